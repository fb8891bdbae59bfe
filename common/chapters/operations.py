"""How much arithmetic training takes: multiplications and additions of convolutions and products.

Backward costs twice what forward does, except in the first layer: the gradient of the images is
not needed.
"""

import math

from common.chapters.spec import Options
from common.models.nets import Shapes


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
