"""Flags, what they ask of a run, and its configuration."""
