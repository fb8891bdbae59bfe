"""LeNet split by MXNet's native parallelism: contexts, and a kvstore."""
