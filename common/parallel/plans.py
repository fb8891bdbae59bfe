"""Plans: how a net is split over devices, as data that runs and predictions share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from common.models.nets import Shapes
from common.parallel.layouts import Layout, Layouts, flat, on_stage, replicated, sharded
from common.parallel.pipelines import ORDERS, Order, Pass, balanced, by_hand, simulate
from common.parallel.shards import shard_bounds


@dataclass(frozen=True)
class Plan:
    """A way to split a net over `devices`; there are `replicas` such groups of devices.

    What it has to know of the net is what a `Net` has.
    """

    strategy: str
    shapes: Shapes
    positions: Mapping[str, int]
    inputs: Mapping[str, int]
    pairs: Sequence[tuple[str, str]]
    units: Sequence[Sequence[str]]
    devices: int
    replicas: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    layers_by_hand: Sequence[int] = ()

    @cached_property
    def layers(self) -> list[str]:
        """The names of the layers, in order."""
        return list(self.positions)

    @cached_property
    def tensors(self) -> Mapping[str, list[str]]:
        """By layer, the names of its weights."""
        found: dict[str, list[str]] = {name: [] for name in self.layers}
        for name in self.shapes:
            found[name.rpartition(".")[0]].append(name)
        return found

    def size(self, layer: str) -> int:
        """How many numbers the weights of a layer have."""
        return sum(math.prod(self.shapes[name]) for name in self.tensors[layer])

    def output(self, layer: str) -> int:
        """How many numbers a layer makes of an image, before any pooling."""
        return self.positions[layer] * self.shapes[f"{layer}.bias"][0]

    def work(self, layer: str) -> int:
        """How many multiplications a layer takes for an image."""
        shapes = [self.shapes[name] for name in self.tensors[layer]]
        return self.positions[layer] * sum(math.prod(each) for each in shapes if len(each) > 1)

    @cached_property
    def stages(self) -> list[list[str]]:
        """The layers of each stage of a pipeline: as many as are asked for, or with equal work."""
        if self.layers_by_hand:
            ranges = by_hand(self.layers_by_hand)
        else:
            work = [sum(map(self.work, unit)) for unit in self.units]
            ranges = balanced(work, self.devices)
        return [[name for i in each for name in self.units[i]] for each in ranges]

    @cached_property
    def unpaired(self) -> list[str]:
        """The layers without a partner: tensor parallelism leaves them whole."""
        paired = {name for pair in self.pairs for name in pair}
        return [name for name in self.layers if name not in paired]

    def rows_of(self, examples: int) -> list[slice]:
        """The examples of each replica; the last ones may have none."""
        return [slice(*each) for each in shard_bounds(examples, self.replicas)]

    def microbatches_of(self, examples: int) -> list[slice]:
        """The examples of each microbatch: sizes differ by at most one, none is empty.

        Of no examples, one microbatch without any.
        """
        bounds = shard_bounds(examples, max(1, min(self.microbatches, examples)))
        return [slice(*each) for each in bounds]

    def shards_of(self, examples: int) -> list[list[slice]]:
        """For each microbatch, the examples of each device, where devices share them."""
        bounds = shard_bounds(examples, self.devices)
        count = max(1, min(self.microbatches, bounds[0][1]))
        cut = [shard_bounds(stop - start, count) for start, stop in bounds]
        return [
            [slice(start + a, start + b) for (start, _), (a, b) in zip(bounds, each, strict=True)]
            for each in zip(*cut, strict=True)
        ]

    def order(self, microbatches: int) -> Order:
        """What each stage of a pipeline does, one after the other."""
        return ORDERS[self.schedule](self.devices, microbatches)

    def order_of(self, examples: int) -> Order:
        """That of the first replica, in a step on so many examples."""
        return self.order(len(self.microbatches_of(self.rows_of(examples)[0].stop)))

    def passes(self, microbatches: int) -> list[Pass]:
        """All passes of a pipeline, each after those that it needs."""
        return [event.done for event in simulate(self.order(microbatches))]

    @cached_property
    def weights(self) -> Layouts:
        """Which device has which part of which weight."""
        k = self.devices
        match self.strategy:
            case "pipeline":
                stage_of = {name: i for i, names in enumerate(self.stages) for name in names}
                return {
                    name: on_stage(shape, stage_of[name.rpartition(".")[0]], k)
                    for name, shape in self.shapes.items()
                }
            case "tensor":
                return {name: self._sliced(name, shape) for name, shape in self.shapes.items()}
            case "zero3":
                return self.updated
        return {name: replicated(shape, k) for name, shape in self.shapes.items()}

    @cached_property
    def updated(self) -> Layouts:
        """Which device updates which part of which weight, and so has the momentum of it."""
        if self.strategy.startswith("zero"):
            return {name: flat(shape, self.devices) for name, shape in self.shapes.items()}
        return self.weights

    def _sliced(self, name: str, shape: tuple[int, ...]) -> Layout:
        """What tensor parallelism gives each device of a weight or bias."""
        layer, _, kind = name.rpartition(".")
        column, row = (layer in {pair[i] for pair in self.pairs} for i in (0, 1))
        out, into = (0, 1) if len(shape) == 4 else (1, 0)
        if column:
            return sharded(shape, out if kind == "weight" else 0, self.devices)
        if row and kind == "weight":
            return sharded(shape, into, self.devices)
        return replicated(shape, self.devices)
