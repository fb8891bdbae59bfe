"""MXNet."""

DISTRIBUTIONS = ("mxnet",)
