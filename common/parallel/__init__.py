"""Data parallelism: how a minibatch is divided, and who sends what to whom in an allreduce."""
