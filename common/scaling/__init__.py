"""The alpha-beta model of allreduce, and measurements beside it."""
