"""How long the book's ResNet-18 would take on this processor."""

import time

import numpy as np

from common.models import resnet18_shapes
from common.presets import PRESETS

EFFICIENCY = 0.5
"""The share of the matrix-product rate that training reaches: 0.4 to 0.65, by framework."""


def book_hours() -> float:
    """The hours that the book's setting takes on the CPU, from its arithmetic. A rough guess."""
    book = PRESETS["concise"]["book"]
    operations = 60_000 * book.epochs * operations_per_image(book.width or 64)
    return operations / (EFFICIENCY * matrix_rate()) / 3600


def operations_per_image(width: int) -> float:
    """Floating point operations of a training step per 28 x 28 image: forward, and twice back."""
    sides = {"stage1": 28, "stage2": 14, "stage3": 7, "stage4": 4, "conv1": 28, "fc": 1}
    products = sum(
        np.prod(shape) * sides[name.split(".")[0]] ** 2
        for name, shape in resnet18_shapes(width).items()
        if len(shape) > 1
    )
    return 6.0 * float(products)


def matrix_rate(size: int = 1024) -> float:
    """Floating point operations per second of a float32 matrix product: the best of three."""
    matrix = np.ones((size, size), np.float32)
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - started)
    return float(2 * size**3 / best)
