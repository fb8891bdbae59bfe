"""The models: canonical names and shapes of their weights.

Convolutions are (out channels, in channels, rows, columns), dense layers (in, out).
"""

import math
from collections.abc import Iterable
from typing import Final

Shapes = dict[str, tuple[int, ...]]


def lenet_shapes(depth: int) -> Shapes:
    shapes: Shapes = {
        "conv1.weight": (20, 1, 3, 3),
        "conv1.bias": (20,),
        "conv2.weight": (50, 20, 5, 5),
        "conv2.bias": (50,),
        "fc1.weight": (800, 128),  # the 800 run over channel, row, column: 50 x 4 x 4
        "fc1.bias": (128,),
    }
    for number in range(1, depth + 1):
        shapes |= {f"hidden{number}.weight": (128, 128), f"hidden{number}.bias": (128,)}
    return {**shapes, "fc2.weight": (128, 10), "fc2.bias": (10,)}


LENET: Final = lenet_shapes(0)
"""Name and shape of LeNet's parameters: 129,068 numbers."""

STAGES: Final = (1, 2, 3, 4)
BLOCKS: Final = (1, 2)

MOMENTUM: Final = 0.1
"""The share of batch normalization's running statistics that a minibatch replaces."""

EPSILON: Final = 1e-5
"""Added to a variance before the root, in batch normalization."""


LAYER_NORM_EPSILON: Final = 2.0**-17
"""The same in layer normalization; a power of 2 is the same number in every dtype."""


def resnet18_shapes(width: int) -> Shapes:
    """ResNet-18's tensors; at width 64, the book's, 11,175,818 parameters."""
    shapes = {**_conv("conv1", 1, width, 3), **_norm("bn1", width)}
    channels = width
    for stage in STAGES:
        out = width * 2 ** (stage - 1)
        for block in BLOCKS:
            name = f"stage{stage}.block{block}"
            shapes |= _conv(f"{name}.conv1", channels, out, 3) | _norm(f"{name}.bn1", out)
            shapes |= _conv(f"{name}.conv2", out, out, 3) | _norm(f"{name}.bn2", out)
            if channels != out:
                shapes |= _conv(f"{name}.conv3", channels, out, 1)
            channels = out
    return shapes | {"fc.weight": (channels, 10), "fc.bias": (10,)}


def layer_shapes(width: int) -> Shapes:
    """The shape of each layer's output in ResNet-18, for one image."""
    shapes: Shapes = {}
    for name in (name for name in resnet18_shapes(width) if name.endswith(".bias")):
        layer = name.removesuffix(".bias")
        # Each stage but the first halves the image; layers before the stages are in the first.
        halved = int(name.removeprefix("stage")[0]) - 1 if name.startswith("stage") else 0
        size = math.ceil(28 / 2**halved)
        shapes[layer] = (width * 2**halved, size, size)
    return shapes | {"fc": (10,)}


def gpt_shapes(
    depth: int, hidden: int = 45, heads: int = 3, vocabulary: int = 13, sequence: int = 9
) -> Shapes:
    """A decoder of `depth` blocks, as GPT-2 (Radford et al., 2019), with a head of its own.

    Heads have an axis of their own; each has its query, key and value side by side. By default
    devices can divide hardly a tensor evenly.
    """
    size, inner = hidden // heads, 4 * hidden
    shapes: Shapes = {"embed.weight": (vocabulary, hidden), "embed.position": (sequence, hidden)}
    for block in range(1, depth + 1):
        attention, mlp = f"block{block}.attention", f"block{block}.mlp"
        shapes |= _layer_norm(attention, hidden) | {
            f"{attention}.qkv.weight": (hidden, heads, 3 * size),
            f"{attention}.qkv.bias": (heads, 3 * size),
            f"{attention}.proj.weight": (heads, size, hidden),
            f"{attention}.proj.bias": (hidden,),
        }
        shapes |= _layer_norm(mlp, hidden) | {
            f"{mlp}.up.weight": (hidden, inner),
            f"{mlp}.up.bias": (inner,),
            f"{mlp}.down.weight": (inner, hidden),
            f"{mlp}.down.bias": (hidden,),
        }
    return {**shapes, **_layer_norm("head", hidden), "head.weight": (hidden, vocabulary)}


def deviation(name: str, shapes: Shapes) -> float:
    """The standard deviation of an initial weight: the book's, or GPT-2's.

    There, the weights that add to the residual stream are smaller, by the root of their number.
    """
    if "embed.weight" not in shapes:
        return 0.01
    residual = (".proj.weight", ".down.weight")
    number = sum(each.endswith(residual) for each in shapes)
    return float(0.02 / math.sqrt(number)) if name.endswith(residual) else 0.02


def trainable(name: str) -> bool:
    """Whether a weight is trained; batch normalization's running statistics are not."""
    return not name.endswith((".running_mean", ".running_var"))


def last_bias(names: Iterable[str]) -> str:
    """The name of the last layer's bias, of the names of all weights in the net's order."""
    return [name for name in names if name.endswith(".bias")][-1]


def _conv(name: str, channels: int, out: int, size: int) -> Shapes:
    return {f"{name}.weight": (out, channels, size, size), f"{name}.bias": (out,)}


def _layer_norm(name: str, width: int) -> Shapes:
    return {f"{name}.norm.weight": (width,), f"{name}.norm.bias": (width,)}


def _norm(name: str, channels: int) -> Shapes:
    return {
        f"{name}.{part}": (channels,) for part in ("weight", "bias", "running_mean", "running_var")
    }
