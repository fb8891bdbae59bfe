"""What the noxfile's sessions do, and the environments that they do it in.

Only nox and the standard library: nox runs before anything is installed.
"""
