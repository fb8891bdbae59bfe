"""The toy chapter in a framework that is NumPy."""

from common.backends.environment import Environment

DISTRIBUTIONS = ("numpy",)
PRELOAD = ("frameworks.toy.toy",)
ONE_THREAD_EACH = False
# Over hosts, each process trains by itself.
ENGINES, TRANSPORTS = {"toy": "none"}, {"cpu": "none"}
ENVIRONMENT = Environment()
