"""The models: canonical names and shapes of their weights.

Convolutions are (out channels, in channels, rows, columns), dense layers (in, out).
"""

import math
from collections.abc import Iterable
from typing import Final

Shapes = dict[str, tuple[int, ...]]


def _conv(name: str, channels: int, out: int, size: int) -> Shapes:
    return {f"{name}.weight": (out, channels, size, size), f"{name}.bias": (out,)}


def _dense(name: str, rows: tuple[int, ...], columns: tuple[int, ...]) -> Shapes:
    return {f"{name}.weight": rows + columns, f"{name}.bias": columns}


def _norm(name: str, width: int, *statistics: str) -> Shapes:
    return {f"{name}.{part}": (width,) for part in ("weight", "bias", *statistics)}


def lenet_shapes(depth: int) -> Shapes:
    shapes = _conv("conv1", 1, 20, 3) | _conv("conv2", 20, 50, 5)
    shapes |= _dense("fc1", (800,), (128,))  # the 800 run over channel, row, column: 50 x 4 x 4
    for number in range(1, depth + 1):
        shapes |= _dense(f"hidden{number}", (128,), (128,))
    return shapes | _dense("fc2", (128,), (10,))


LENET: Final = lenet_shapes(0)
"""Name and shape of LeNet's parameters: 129,068 numbers."""

STAGES: Final = (1, 2, 3, 4)
BLOCKS: Final = (1, 2)
STATISTICS: Final = ("running_mean", "running_var")

MOMENTUM: Final = 0.1
"""The share of batch normalization's running statistics that a minibatch replaces."""

EPSILON: Final = 1e-5
"""Added to a variance before the root, in batch normalization."""


LAYER_NORM_EPSILON: Final = 2.0**-17
"""The same in layer normalization; a power of 2 is the same number in every dtype."""


def resnet18_shapes(width: int) -> Shapes:
    """ResNet-18's tensors; at width 64, the book's, 11,175,818 parameters."""
    shapes, channels = _conv("conv1", 1, width, 3) | _norm("bn1", width, *STATISTICS), width
    for stage in STAGES:
        out = width * 2 ** (stage - 1)
        for block in BLOCKS:
            name = f"stage{stage}.block{block}"
            for number, ins in enumerate((channels, out), 1):
                shapes |= _conv(f"{name}.conv{number}", ins, out, 3)
                shapes |= _norm(f"{name}.bn{number}", out, *STATISTICS)
            if channels != out:
                shapes |= _conv(f"{name}.conv3", channels, out, 1)
            channels = out
    return shapes | _dense("fc", (channels,), (10,))


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
    depth: int, hidden: int, heads: int, vocabulary: int, sequence: int, kv_heads: int, gated: int
) -> Shapes:
    """A decoder of `depth` blocks, as GPT-2 (Radford et al., 2019), with a head of its own.

    Heads have an axis of their own, if they divide `hidden`; each has its query, key and value
    side by side. A `gated` MLP has twice this width (0: 4 h) before its product. Without words,
    there are only blocks.
    """
    qkv = hidden + 2 * hidden * kv_heads // heads
    up, down = (2 * gated, gated) if gated else (4 * hidden, 4 * hidden)

    def by_head(width: int) -> tuple[int, ...]:
        return (width,) if width % heads else (heads, width // heads)

    first: Shapes = {"embed.weight": (vocabulary, hidden), "embed.position": (sequence, hidden)}
    last = _norm("head.norm", hidden) | {"head.weight": (hidden, vocabulary)}
    shapes = first if vocabulary else {}
    for name in (f"block{number}" for number in range(1, depth + 1)):
        shapes |= _norm(f"{name}.attention.norm", hidden)
        shapes |= _dense(f"{name}.attention.qkv", (hidden,), by_head(qkv))
        shapes |= _dense(f"{name}.attention.proj", by_head(hidden), (hidden,))
        shapes |= _norm(f"{name}.mlp.norm", hidden)
        shapes |= _dense(f"{name}.mlp.up", (hidden,), (up,))
        shapes |= _dense(f"{name}.mlp.down", (down,), (hidden,))
    return shapes | last if vocabulary else shapes


def with_experts(shapes: Shapes, count: int) -> Shapes:
    """The same decoder, with every second MLP a mixture of `count` experts, which are 2 h wide."""
    mixed: Shapes = {}
    for name, shape in shapes.items():
        block, of_mlp, tensor = name.partition(".mlp.")
        if not of_mlp or int(block.removeprefix("block")) % 2:
            mixed[name] = shape
        elif tensor == "norm.weight":
            mixed |= _experts(f"{block}.moe", count, *shape)
    return mixed


def _experts(name: str, count: int, hidden: int) -> Shapes:
    """A norm, a router, and experts, which have the first axis of each of their tensors."""
    return _norm(f"{name}.norm", hidden) | {
        f"{name}.router.weight": (hidden, count),
        f"{name}.up.weight": (count, hidden, 2 * hidden),
        f"{name}.up.bias": (count, 2 * hidden),
        f"{name}.down.weight": (count, 2 * hidden, hidden),
        f"{name}.down.bias": (count, hidden),
    }


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
    return not name.endswith(STATISTICS)


def last_bias(names: Iterable[str]) -> str:
    """The name of the last layer's bias, of the names of all weights in the net's order."""
    return [name for name in names if name.endswith(".bias")][-1]
