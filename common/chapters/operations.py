"""How much arithmetic training takes: multiplications and additions of convolutions and products.

Backward costs twice what forward does, except in the first layer: the gradient of the images is
not needed.
"""

import math
import time
from typing import Final

import numpy as np

from common.chapters.chapters import SPECS
from common.chapters.spec import Options
from common.models.nets import Shapes

EFFICIENCY: Final = 0.5
"""The share of the matrix-product rate that training reaches: 0.4 to 0.65, by framework."""


def training_operations(options: Options) -> int:
    """Floating-point operations of one training step, for each image in the minibatch."""
    forward = list(layer_operations(options).values())
    return 3 * sum(forward) - forward[0]


def layer_operations(options: Options) -> dict[str, int]:
    """Floating-point operations of each layer's forward pass, for each image."""
    shapes = options.shapes()
    return {
        layer: 2 * options.positions(layer) * math.prod(shapes[f"{layer}.weight"])
        for layer in products(shapes)
    }


def products(shapes: Shapes) -> list[str]:
    """The layers that multiply matrices: convolutions and dense ones."""
    weights = (name for name in shapes if name.endswith(".weight") and len(shapes[name]) > 1)
    return [name.removesuffix(".weight") for name in weights]


def matrix_rate(size: int = 1024) -> float:
    """Floating point operations per second of a float32 matrix product: the best of three."""
    matrix = np.ones((size, size), np.float32)
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - started)
    return float(2 * size**3 / best)


def book_hours(chapter: str) -> float:
    """The hours that the book's setting takes on this processor, roughly, from its arithmetic."""
    spec = SPECS[chapter]
    images = 60_000 * spec.presets["book"].epochs
    return images * training_operations(spec.of_the_book()) / (EFFICIENCY * matrix_rate()) / 3600
