"""PyTorch."""

DISTRIBUTIONS = ("torch",)
