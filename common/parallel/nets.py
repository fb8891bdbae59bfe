"""Nets as plans see them: layers with their parameters, work and input."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, combinations, groupby, pairwise
from typing import Any, Final

from common.base.errors import RequestError
from common.models.nets import (
    Shapes,
    gpt_shapes,
    layer_shapes,
    lenet_shapes,
    resnet18_shapes,
    trainable,
    with_experts,
)

RECOMPUTE: Final = ("none", "selective", "full")
"""Recomputed in the backward pass: nothing, the attention's scores, whole blocks.

The net that runs has a fourth, "layers": of attention and MLP, only the inputs are kept.
"""

ATTENTION: Final = ("flash", "scores")
"""Keeps no scores of all pairs of tokens (FlashAttention, Dao et al., 2022), or keeps them."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of a transformer, and its vocabulary."""

    count: int
    hidden: int
    heads: int
    sequence: int = 2048
    recompute: str = "none"
    attention: str = "flash"
    vocabulary: int = 0
    kv_heads: int = 0
    gated: int = 0

    @property
    def queries_per_key(self) -> int:
        """How many heads share keys and values."""
        return self.heads // (self.kv_heads or self.heads)


@dataclass(frozen=True)
class Experts:
    """Of a mixture of `count` experts, each token chooses `top_k`.

    Of a device's tokens, an expert takes `capacity` times as many as if all experts were chosen
    equally often, and drops others; 0: it drops none. `balance` is the weight of the auxiliary
    loss.
    """

    count: int = 4
    top_k: int = 2
    capacity: float = 0.0
    balance: float = 0.01

    def slots(self, tokens: int) -> int:
        """The tokens that a device may send to an expert; of those that stay empty, zeros."""
        most = math.ceil(self.capacity * self.top_k * tokens / self.count) or tokens
        return max(1, min(most, tokens))


@dataclass(frozen=True)
class Net:
    """Consecutive layers.

    `shapes` are those of the parameters: layer `fc1` has `fc1.weight` and `fc1.bias`. For each
    layer, in order, `positions` has the number of places of an image where it is applied,
    `inputs` the elements of its input for an example. `pairs` are column-parallel and
    row-parallel layers; a transformer's are parts of one layer. A pipeline is cut only between
    `units` of layers. A transformer's `blocks` say what it keeps and recomputes; its MLPs may be
    mixtures of `experts`.
    """

    shapes: Shapes
    positions: Mapping[str, int]
    inputs: Mapping[str, int]
    pairs: Sequence[tuple[str, str]]
    units: Sequence[Sequence[str]]
    blocks: Blocks = field(default=Blocks(0, 0, 0, recompute="layers"), kw_only=True)
    experts: Experts | None = field(default=None, kw_only=True)

    @cached_property
    def layers(self) -> list[str]:
        """The names of the layers, in order."""
        return list(self.positions)

    @cached_property
    def tensors(self) -> Mapping[str, list[str]]:
        """The names of each layer's parameters."""
        layers = groupby(self.shapes, self._layer_of)
        return {layer: list(names) for layer, names in layers}

    def _layer_of(self, tensor: str) -> str:
        layer = tensor.rpartition(".")[0]
        return layer if layer in self.positions else self._layer_of(layer)

    @cached_property
    def vocabulary(self) -> int:
        """The number of words; 0 without any."""
        return self.blocks.vocabulary

    @cached_property
    def mixtures(self) -> list[str]:
        """The layers that are mixtures of experts."""
        return [name for name in self.layers if name.endswith(".moe")]

    @cached_property
    def of_experts(self) -> list[str]:
        """The tensors of experts, which are the first axis; a router is none."""
        return [name for name in self.shapes if ".moe.up." in name or ".moe.down." in name]

    @cached_property
    def size(self) -> Callable[[str], int]:
        """The number of elements of a layer's parameters."""
        sizes = {name: math.prod(shape) for name, shape in self.shapes.items()}
        layers = {layer: sum(sizes[x] for x in names) for layer, names in self.tensors.items()}
        return layers.__getitem__

    def output(self, layer: str) -> int:
        """The elements of a layer's output for each example, before pooling."""
        return self.positions[layer] * self.shapes[self.tensors[layer][-1]][-1]

    @cached_property
    def work(self) -> Callable[[str], int]:
        """The multiplications of a layer's forward pass for each example."""
        sizes = {
            name: math.prod(shape)
            for name, shape in self.shapes.items()
            if len(shape) > 1 and not name.endswith(".bias") and not name.startswith("embed.")
        }
        if each := self.experts:  # of which a token chooses some
            chosen = sizes.keys() & {*self.of_experts}
            sizes |= {name: sizes[name] * each.top_k // each.count for name in chosen}
        layers = {x: sum(sizes.get(y, 0) for y in names) for x, names in self.tensors.items()}
        return {layer: self.positions[layer] * size for layer, size in layers.items()}.__getitem__

    def cut(self, stages: int, sizes: Sequence[int] = ()) -> list[list[str]]:
        """The layers of each stage of a pipeline, of so many units or of balanced work."""
        works = tuple(sum(map(self.work, unit)) for unit in self.units)
        bounds = pairwise(accumulate(sizes or balanced(works, stages), initial=0))
        return [[name for unit in self.units[a:b] for name in unit] for a, b in bounds]

    def kept(self, layers: Sequence[str], shards: int = 1) -> tuple[int, int]:
        """The elements for an example on each of the `shards` of a stage of layers.

        The first are kept in flight. The second, of the microbatch that is in its backward pass,
        are recomputed for a block, or the head's: logits of 16 bits, for the loss and as gradient
        of 32. With GELU, a block keeps 34 h + 5 a s bytes, and sequence parallelism shards all
        (Korthikanti et al., 2022, section 4): inputs of norms and products, masks of dropout (7 h
        elements), keys and values, 8 h of the MLP. A gated one keeps three widths, no masks.
        """
        blocks = self.blocks
        if blocks.recompute == "layers":
            return sum(self.inputs[layer] for layer in layers), 0
        h, a, tokens = blocks.hidden, blocks.heads, self.positions[layers[0]]
        scores = 5 * a * blocks.sequence / 2 * (blocks.attention == "scores")
        mlp = 3 * blocks.gated - h if blocks.gated else 8 * h
        block = 7 * h + 2 * h * (blocks.kv_heads or a) // a + mlp
        again = {"none": 0.0, "selective": scores, "full": block + scores}[blocks.recompute]
        kept = h if blocks.recompute == "full" else block + scores - again
        again = max(again, 5 * blocks.vocabulary * ("head" in layers))
        count = sum(layer.endswith((".mlp", ".moe")) for layer in layers)
        return count * math.ceil(tokens * kept / shards), math.ceil(tokens * again / shards)

    @cached_property
    def allreduces(self) -> list[tuple[str, int]]:
        """The all-reduces of tensor parallelism: their kind, and elements for each example."""
        times = 2 if self.blocks.recompute == "full" else 1
        sums = [self.output(row) for _, row in self.pairs] * times
        first = () if self.blocks.count else self.layers[:1]  # whose input needs no gradient
        columns = [column for column, _ in self.pairs if column not in first]
        if self.vocabulary:  # embeddings, three numbers a token, the head
            sums += [self.output("embed"), *[self.positions["head"]] * 3]
            columns.append("head")
        forward = [("activations", elements) for elements in sums]
        return [*forward, *(("gradients", self.inputs[column]) for column in columns)]

    def empty(self, tokens: int) -> float:
        """Multiplications for each of a device's tokens that are of empty slots of experts."""
        if not self.experts:
            return 0.0
        size = sum(math.prod(self.shapes[x]) for x in self.of_experts if x.endswith("weight"))
        chosen = self.experts.top_k / self.experts.count
        return size * (self.experts.slots(tokens) / tokens - chosen)

    def operations(self) -> tuple[int, int]:
        """Floating-point operations of a step for each example: of the net, and to recompute.

        A multiplication takes 2 forward, 4 backward (Narayanan et al., 2021, appendix).
        """
        work = sum(map(self.work, self.layers))
        if not self.blocks.count:  # nobody needs the gradient of the first layer's input
            return 6 * work - 2 * self.work(self.layers[0]), 0
        blocks, tokens = self.blocks, self.positions[self.layers[0]]
        scores = 2 * tokens * blocks.count * blocks.hidden * blocks.sequence
        whole = work + scores
        full = whole - (self.work("head") if self.vocabulary else 0)
        again = {"none": 0, "selective": scores, "full": full, "layers": whole}
        return 6 * whole, 2 * again[blocks.recompute]

    def replicated_operations(self) -> int:
        """The operations of weights that tensor parallelism replicates, also of shortcuts."""
        if self.blocks.count:
            return 0
        paired = [layer for pair in self.pairs for layer in pair]
        weights = (self.positions[x] * math.prod(self.shapes[f"{x}.weight"]) for x in paired)
        work = sum(map(self.work, self.layers)) - sum(weights)
        first = self.layers[0]
        return 6 * work - (0 if first in paired else 2 * self.work(first))


def lenet(depth: int) -> Net:
    """LeNet with `depth` more dense layers of 128 before the last one; layers pair in order."""
    shapes = lenet_shapes(depth)
    layers = list(dict.fromkeys(name.partition(".")[0] for name in shapes))
    positions = dict.fromkeys(layers, 1) | {"conv1": 26 * 26, "conv2": 9 * 9}
    inputs = dict.fromkeys(layers, 128)
    inputs |= {"conv1": 28 * 28, "conv2": 20 * 13 * 13, "fc1": 50 * 4 * 4}
    pairs = list(zip(layers[::2], layers[1::2], strict=False))
    return Net(shapes, positions, inputs, pairs, [[layer] for layer in layers])


@lru_cache(maxsize=8)  # many plans have the same net
def transformer(
    parameters: int,
    layers: int,
    hidden: int = 0,
    heads: int = 0,
    tokens: int = 1,
    experts: Experts | None = None,
    **how: Any,
) -> Net:
    """A transformer; an example has so many `tokens`; `how`: further fields of `Blocks`.

    With a `vocabulary`, also embeddings, learned positions and a head of its own. 0: `hidden`
    is such that there are about `parameters` elements, 12 h^2 a layer; there are 8 `heads` for
    each 1,024 of it. If both are 0, heads need not divide `hidden`: the net only stands for
    others of its size. Raises RequestError if they do not divide a given one.
    """
    given, multiple, words = hidden, heads or 2, how.get("vocabulary", 0)
    half = words and words + how.get("sequence", 2048) / 2
    root = (math.sqrt(half**2 + 12 * layers * parameters) - half) / (12 * layers)
    hidden = given or multiple * max(1, int(root / multiple + 0.5))
    heads = heads or 8 * max(1, int(hidden / 1024 + 0.5))
    sizes = Blocks(layers, hidden, heads, **how)
    if given % heads:
        why = f"{heads} heads do not divide a hidden size of {given}"
        raise RequestError(f"{why}: ask for a multiple as --hidden, or for other --heads")
    if heads % (kv := sizes.kv_heads or heads):
        raise RequestError(f"{kv} heads of keys do not divide {heads}: ask for other --kv-heads")
    shapes = gpt_shapes(layers, hidden, heads, words, sizes.sequence, kv, sizes.gated)
    blocks = [[f"block{i}.attention", f"block{i}.mlp"] for i in range(1, layers + 1)]
    if experts:
        shapes = with_experts(shapes, experts.count)
        for i, block in enumerate(blocks[1::2], 1):
            block[1] = f"block{2 * i}.moe"
    units = [["embed"], *blocks, ["head"]] if words else blocks
    positions = {layer: tokens for unit in units for layer in unit}
    inputs = {layer: tokens * (1 if layer == "embed" else hidden) for layer in positions}
    pairs = [(layer, layer) for block in blocks for layer in block]
    return Net(shapes, positions, inputs, pairs, units, blocks=sizes, experts=experts)


def gpt(depth: int, experts: Experts | None = None) -> Net:
    """The small transformer that runs, of `depth` blocks; an example is a sequence.

    Devices can divide hardly a tensor evenly.
    """
    how: dict[str, Any] = {"sequence": 9, "vocabulary": 13, "recompute": "layers"}
    return transformer(0, depth, 45, 3, 9, experts, **how)


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


@lru_cache
def balanced(work: tuple[float, ...], stages: int) -> list[int]:
    """The number of layers of each stage, such that the most work of a stage is least.

    Of equals, the first stages have the fewest layers. Raises ValueError if there are
    fewer layers than stages.
    """
    if not 0 < stages <= len(work):
        raise ValueError(f"{len(work)} layers cannot be cut into {stages} stages")
    before = list(accumulate(work, initial=0))

    def sizes(limit: float) -> list[int]:
        """The stages, filled from the last one on; layers may be left over."""
        counts, stop = [], len(work)
        for stage in reversed(range(stages)):  # earlier ones take a layer at least
            starts = (i for i in range(stage, stop) if before[stop] - before[i] <= limit)
            start = next(starts, stop)
            counts.append(stop - start)
            stop = start
        return counts[::-1]

    limits = sorted({b - a for a, b in combinations(before, 2)})
    least = bisect_left(limits, True, key=lambda limit: sum(sizes(limit)) == len(work))
    return sizes(limits[least])
