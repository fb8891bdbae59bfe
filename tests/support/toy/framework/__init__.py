"""The toy chapter in a framework that is NumPy."""

DISTRIBUTIONS = ("numpy",)
PRELOAD = ("frameworks.toy.toy",)
ONE_THREAD_EACH = False
