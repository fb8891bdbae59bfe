"""The sessions of nox, in parts: environments, accelerators, pins, checks and proofs."""
