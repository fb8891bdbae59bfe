"""Flags, the request that they make, and the configuration of a run."""
