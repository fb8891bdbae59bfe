"""Ways to split training over devices, from scratch, in MXNet."""
