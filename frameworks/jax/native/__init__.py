"""LeNet split over devices by what JAX itself has for it: layouts, `shard_map`, `ppermute`."""
