"""The toy chapter in a framework that is NumPy."""

from common.backends.environment import Environment

DISTRIBUTIONS = ("numpy",)
PRELOAD = ("frameworks.toy.toy",)
ONE_THREAD_EACH = False
ENVIRONMENT = Environment()
