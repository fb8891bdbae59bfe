"""The training loop, and the command of a chapter."""
