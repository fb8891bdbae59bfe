"""Data parallelism: how a minibatch is divided, and which device sends what in an allreduce."""
