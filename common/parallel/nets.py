"""Nets as plans see them: layers in a row, with the tensors, the work and the input of each."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from common.models.nets import Shapes, layer_shapes, lenet_shapes, resnet18_shapes, trainable


class Net(NamedTuple):
    """A net as a row of layers.

    `shapes` are those of the weights: those of layer `fc1` are `fc1.weight`, `fc1.bias` and so on.
    For each layer, in order, `positions` tells at how many places of an image it is applied, and
    `inputs` how many numbers it is given for an image. Tensor parallelism cuts `pairs` of layers,
    the first by columns, the second by rows. A pipeline cuts between `units` of layers alone.
    """

    shapes: Shapes
    positions: Mapping[str, int]
    inputs: Mapping[str, int]
    pairs: Sequence[tuple[str, str]]
    units: Sequence[Sequence[str]]


def chain(shapes: Shapes, positions: Mapping[str, int], inputs: Mapping[str, int]) -> Net:
    """A net in which all layers follow each other: they are cut anywhere, and paired in order."""
    layers = list(positions)
    pairs = list(zip(layers[::2], layers[1::2], strict=False))
    return Net(shapes, positions, inputs, pairs, [[layer] for layer in layers])


def lenet(depth: int) -> Net:
    """LeNet with `depth` dense layers of 128 more before the last one."""
    shapes = lenet_shapes(depth)
    layers = [name.removesuffix(".weight") for name in shapes if name.endswith(".weight")]
    places, given = {"conv1": 26 * 26, "conv2": 9 * 9}, [28 * 28, 20 * 13 * 13, 50 * 4 * 4]
    given += [128] * (len(layers) - len(given))
    positions = {name: places.get(name, 1) for name in layers}
    return chain(shapes, positions, dict(zip(layers, given, strict=True)))


def dense(parameters: int, layers: int) -> Net:
    """Equal dense layers, each with as many inputs as outputs, and about so many parameters."""
    side = max(1, math.isqrt(parameters // layers))
    names = [f"layer{number}" for number in range(1, layers + 1)]
    shapes: Shapes = {}
    for name in names:
        shapes |= {f"{name}.weight": (side, side), f"{name}.bias": (side,)}
    return chain(shapes, dict.fromkeys(names, 1), dict.fromkeys(names, side))


def resnet18(width: int) -> Net:
    """ResNet-18 whose first stage has `width` channels, with its parts as plans can cut them.

    A layer is a convolution with the batch normalization behind it, whose statistics do not count.
    That of the shortcut belongs to the second one of its block: tensor parallelism leaves it whole.
    A block, two convolutions, is a pair, and no pipeline cuts it.
    """
    made = layer_shapes(width)
    shapes: Shapes = {}
    for name, shape in resnet18_shapes(width).items():
        if trainable(name):
            layer, kind = name.rsplit(".", 1)
            block, _, of = layer.rpartition(".")
            number = of[-1] if of.startswith("bn") else "2" if of == "conv3" else ""
            home = f"{block}.conv{number}".lstrip(".") if number else layer
            shapes[f"{home}.{kind}" if home == layer else f"{home}.{of}_{kind}"] = shape
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in shapes))
    positions = {name: math.prod(made[name][1:]) for name in layers}
    inputs = dict(zip(layers, [28 * 28, *(math.prod(made[x]) for x in layers[:-1])], strict=True))
    inputs["fc"] = made[layers[-2]][0]  # pooled: a number for each channel
    pairs = [(a, b) for a, b in zip(layers[1:-1:2], layers[2:-1:2], strict=True)]
    return Net(shapes, positions, inputs, pairs, [layers[:1], *map(list, pairs), layers[-1:]])
