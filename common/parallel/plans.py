"""Plans: how a net is split over devices, as data that runs and predictions share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from common.parallel.ledger import Ledger
from common.parallel.nets import Net
from common.parallel.pipelines import ORDERS, Order, Pass, TimedPass, balanced, by_hand, simulate
from common.parallel.shards import shard_bounds


@dataclass(frozen=True)
class Part:
    """The entries from `start` to `stop` of a tensor along `axis`; of None: of the flat tensor."""

    axis: int | None
    start: int
    stop: int

    def of(self, values: Any) -> Any:
        """The part of an array, as a view."""
        if self.axis is None:
            return values.reshape(-1)[self.start : self.stop]
        return values[(slice(None),) * self.axis + (slice(self.start, self.stop),)]

    def size(self, shape: Sequence[int]) -> int:
        """The number of elements of the part of a tensor of this shape."""
        length = math.prod(shape) if self.axis is None else shape[self.axis]
        return math.prod(shape) // length * (self.stop - self.start)


Layout = tuple[Part | None, ...]
"""The part of each device; None: it has nothing of the tensor."""

Layouts = Mapping[str, Layout]
"""The layout of each tensor."""


@dataclass(frozen=True)
class Plan(Net):
    """A net that is split over `devices`, in each of `replicas` groups of devices.

    A strategy is a subclass. By itself, each device of a group has the whole net, updates all of
    it, computes with all examples of the group, and sends nothing to the others.

    `sizes` has the number of a net's units in each stage of a pipeline; if it is empty, stages are
    balanced.
    """

    strategy: str
    devices: int
    replicas: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    sizes: Sequence[int] = ()

    words: ClassVar[str] = ""
    """The strategy, for a help."""

    sharded: ClassVar[bool] = False
    """Whether the devices of a group share its examples."""

    @classmethod
    def refusal(cls, net: Net, group: int) -> str:
        """Why a group of so many devices cannot train the net; empty if it can."""
        return ""

    @cached_property
    def stages(self) -> list[list[str]]:
        """The layers of each stage of a pipeline."""
        if self.sizes:
            ranges = by_hand(self.sizes)
        else:
            ranges = balanced([sum(map(self.work, unit)) for unit in self.units], self.devices)
        return [[name for i in each for name in self.units[i]] for each in ranges]

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
        """For each microbatch, the examples of each device: its shard if sharded, else all."""
        if not self.sharded:
            return [[rows] * self.devices for rows in self.microbatches_of(examples)]
        bounds = shard_bounds(examples, self.devices)
        count = max(1, min(self.microbatches, bounds[0][1]))
        cut = [shard_bounds(stop - start, count) for start, stop in bounds]
        return [
            [slice(start + a, start + b) for (start, _), (a, b) in zip(bounds, each, strict=True)]
            for each in zip(*cut, strict=True)
        ]

    def order(self, microbatches: int) -> Order:
        """The passes of each device of a pipeline, in order."""
        return ORDERS[self.schedule](self.devices, microbatches)

    def passes(self, microbatches: int) -> list[Pass]:
        """All passes of a pipeline, each after those that it needs."""
        return [event.done for event in simulate(self.order(microbatches))]

    def simulated(self, examples: int) -> list[TimedPass]:
        """The passes of a pipeline's first replica in a step, where each takes a unit of time."""
        return simulate(self.order(len(self.microbatches_of(self.rows_of(examples)[0].stop))))

    @cached_property
    def weights(self) -> Layouts:
        """Which device has which part of which weight."""
        return {name: self.whole(name) for name in self.shapes}

    @cached_property
    def updated(self) -> Layouts:
        """Which device updates which part of which weight, and so has its velocity."""
        return self.weights

    def whole(self, name: str, only: int | None = None) -> Layout:
        """The whole tensor on each device, or on only one."""
        whole = Part(0, 0, self.shapes[name][0])
        return tuple(whole if only in (None, device) else None for device in range(self.devices))

    def slices(self, name: str, axis: int | None = None) -> Layout:
        """A slice of the flat tensor, or along an axis, for each device."""
        length = math.prod(self.shapes[name]) if axis is None else self.shapes[name][axis]
        return tuple(Part(axis, *bounds) for bounds in shard_bounds(length, self.devices))

    def count_sends(self, examples: int, group: Sequence[int], ledger: Ledger) -> None:
        """Counts the messages within a replica, in a step on `examples`."""

    def in_flight(self, examples: int, device: int) -> tuple[int, int]:
        """The most examples and microbatches of which a device keeps activations."""
        shards = [each[device] for each in self.shards_of(examples)]
        return max(rows.stop - rows.start for rows in shards), 1

    def activations_kept(self, device: int) -> int:
        """The elements that a device keeps for each example in flight: inputs of its layers."""
        return sum(self.inputs.values())

    def elements_updated(self, device: int) -> dict[str, int]:
        """The number of elements that a device updates, of each weight of which it has a part."""
        held = {name: layout[device] for name, layout in self.updated.items()}
        return {k: part.size(self.shapes[k]) for k, part in held.items() if part is not None}

    def weights_kept(self, device: int) -> int:
        """The most elements of weights that a device keeps."""
        held = [(self.shapes[name], layout[device]) for name, layout in self.weights.items()]
        return sum(part.size(shape) for shape, part in held if part is not None)

    def gradients_kept(self, device: int, examples: int) -> int:
        """The most elements of gradients that a device keeps in a step on `examples`."""
        return sum(self.elements_updated(device).values())
