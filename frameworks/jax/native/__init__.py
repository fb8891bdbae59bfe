"""LeNet split by JAX's native parallelism: shardings, `shard_map`, `ppermute`."""
