"""The sessions of nox, in parts: environments, accelerators, pins and checks."""
