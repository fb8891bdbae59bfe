"""Nets as plans see them: layers with their parameters, work and input."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from common.models.nets import Shapes, layer_shapes, lenet_shapes, resnet18_shapes, trainable


@dataclass(frozen=True)
class Net:
    """Consecutive layers.

    `shapes` are those of the parameters: layer `fc1` has `fc1.weight` and `fc1.bias`. For each
    layer, in order, `positions` has the number of places of an image where it is applied,
    `inputs` the elements of its input for an example. `pairs` are column-parallel and
    row-parallel layers. A pipeline is cut only between `units` of layers.
    """

    shapes: Shapes
    positions: Mapping[str, int]
    inputs: Mapping[str, int]
    pairs: Sequence[tuple[str, str]]
    units: Sequence[Sequence[str]]

    @cached_property
    def layers(self) -> list[str]:
        """The names of the layers, in order."""
        return list(self.positions)

    @cached_property
    def tensors(self) -> Mapping[str, list[str]]:
        """The names of each layer's parameters."""
        layers = groupby(self.shapes, lambda name: name.rpartition(".")[0])
        return {layer: list(names) for layer, names in layers}

    @cached_property
    def unpaired(self) -> list[str]:
        """The layers without a partner: tensor parallelism replicates them."""
        paired = {name for pair in self.pairs for name in pair}
        return [name for name in self.layers if name not in paired]

    def size(self, layer: str) -> int:
        """The number of elements of a layer's parameters."""
        return sum(math.prod(self.shapes[name]) for name in self.tensors[layer])

    def output(self, layer: str) -> int:
        """The elements of a layer's output for each example, before pooling."""
        return self.positions[layer] * self.shapes[f"{layer}.bias"][0]

    def work(self, layer: str) -> int:
        """The multiplications of a layer's forward pass for each example."""
        shapes = [self.shapes[name] for name in self.tensors[layer]]
        weights = sum(math.prod(shape) for shape in shapes if len(shape) > 1)
        return self.positions[layer] * weights


def chain(shapes: Shapes, positions: Mapping[str, int], inputs: Mapping[str, int]) -> Net:
    """A net without branches: it is cut anywhere, and its layers pair in order."""
    layers = list(positions)
    pairs = list(zip(layers[::2], layers[1::2], strict=False))
    return Net(shapes, positions, inputs, pairs, [[layer] for layer in layers])


def lenet(depth: int) -> Net:
    """LeNet with `depth` more dense layers of 128 before the last one."""
    shapes = lenet_shapes(depth)
    layers = list(dict.fromkeys(name.partition(".")[0] for name in shapes))
    positions = dict.fromkeys(layers, 1) | {"conv1": 26 * 26, "conv2": 9 * 9}
    inputs = {"conv1": 28 * 28, "conv2": 20 * 13 * 13, "fc1": 50 * 4 * 4}
    return chain(shapes, positions, dict.fromkeys(layers, 128) | inputs)


def dense(parameters: int, layers: int) -> Net:
    """Equal square dense layers with about `parameters` elements in all."""
    side = max(1, math.isqrt(parameters // layers))
    names = [f"layer{number}" for number in range(1, layers + 1)]
    shapes: Shapes = {}
    for name in names:
        shapes |= {f"{name}.weight": (side, side), f"{name}.bias": (side,)}
    return chain(shapes, dict.fromkeys(names, 1), dict.fromkeys(names, side))


def resnet18(width: int) -> Net:
    """ResNet-18 whose first stage has `width` channels.

    A layer is a convolution with its batch normalization, without running statistics. A
    shortcut's convolution belongs to the second layer of its block, and is replicated. The
    two layers of a block are a pair, and no pipeline cuts between them.
    """
    outputs = layer_shapes(width)
    shapes: Shapes = {}
    for name, shape in resnet18_shapes(width).items():
        if trainable(name):
            for part, layer in (("bn1", "conv1"), ("bn2", "conv2"), ("conv3", "conv2")):
                name = name.replace(f"{part}.", f"{layer}.{part}_")
            shapes[name] = shape
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in shapes))
    positions = {name: math.prod(outputs[name][1:]) for name in layers}
    sizes = [28 * 28, *(math.prod(outputs[name]) for name in layers[:-1])]
    inputs = dict(zip(layers, sizes, strict=True))
    inputs["fc"] = outputs[layers[-2]][0]  # pooled: one element for each channel
    pairs = list(zip(layers[1:-1:2], layers[2:-1:2], strict=True))
    return Net(shapes, positions, inputs, pairs, [layers[:1], *pairs, layers[-1:]])
