"""How much arithmetic training takes: multiplications and additions of convolutions and products.

Backward costs twice what forward does, but for the first layer: nobody asks for the gradient of
the images.
"""

import math
import time

import numpy as np

from common.models.nets import Shapes, shapes_of

LENET_PLACES = {"conv1": 26 * 26, "conv2": 9 * 9, "fc1": 1, "fc2": 1}
"""At how many places each layer of LeNet is applied to an image."""


def training_operations(chapter: str, width: int | None) -> int:
    """Floating-point operations of one training step, for each image in the minibatch."""
    forward = layer_operations(chapter, width)
    return 3 * sum(forward.values()) - forward["conv1"]


def layer_operations(chapter: str, width: int | None) -> dict[str, int]:
    """Floating-point operations of each layer's forward pass, for each image."""
    shapes = shapes_of(chapter, width)
    return {
        layer: 2 * places(chapter, layer) * math.prod(shapes[f"{layer}.weight"])
        for layer in products(shapes)
    }


def products(shapes: Shapes) -> list[str]:
    """The layers that multiply matrices: convolutions and dense ones."""
    weights = (name for name in shapes if name.endswith(".weight") and len(shapes[name]) > 1)
    return [name.removesuffix(".weight") for name in weights]


def places(chapter: str, layer: str) -> int:
    """At how many places of an image (28 x 28) the layer is applied."""
    if chapter == "scratch":
        return LENET_PLACES[layer]
    if layer == "fc":
        return 1
    stage = int(layer.removeprefix("stage")[0]) if layer.startswith("stage") else 1
    side = (28, 14, 7, 4)[stage - 1]
    return side * side


def matrix_rate(size: int = 1024) -> float:
    """Floating point operations per second of a float32 matrix product: the best of three."""
    matrix = np.ones((size, size), np.float32)
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - started)
    return float(2 * size**3 / best)
