"""Plans: how a net is split over devices, as data that runs and predictions share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

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

    `sizes` has the number of a net's units in each stage of a pipeline; if it is empty, stages are
    balanced.
    """

    strategy: str
    devices: int
    replicas: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    sizes: Sequence[int] = ()

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
        """For each microbatch, the examples of each device: its shard in ZeRO, else all of them."""
        if not self.strategy.startswith("zero"):
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
        if self.strategy == "zero3":
            return self.updated
        stages, axes = dict[str, int](), dict[str, int]()
        if self.strategy == "pipeline":
            homes = ((i, self.tensors[x]) for i, names in enumerate(self.stages) for x in names)
            stages = {name: i for i, tensors in homes for name in tensors}
        if self.strategy == "tensor":
            axes = self._axes()
        return {
            name: self._slices(shape[axes[name]], axes[name])
            if name in axes
            else self._whole(shape, stages.get(name))
            for name, shape in self.shapes.items()
        }

    @cached_property
    def updated(self) -> Layouts:
        """Which device updates which part of which weight, and so has its velocity."""
        if self.strategy.startswith("zero"):
            return {k: self._slices(math.prod(shape), None) for k, shape in self.shapes.items()}
        return self.weights

    def _whole(self, shape: Sequence[int], stage: int | None) -> Layout:
        """The whole tensor on one device, or on every one."""
        whole = Part(0, 0, shape[0])
        return tuple(whole if stage in (None, device) else None for device in range(self.devices))

    def _slices(self, length: int, axis: int | None) -> Layout:
        """A slice along an axis, or of the flat tensor, for each device."""
        return tuple(Part(axis, *bounds) for bounds in shard_bounds(length, self.devices))

    def _axes(self) -> dict[str, int]:
        """The axis along which tensor parallelism slices a weight or bias, where it does."""
        axes: dict[str, int] = {}
        for column, row in self.pairs:
            axes |= dict.fromkeys(self.tensors[column], 0)
            for name, dense in ((f"{column}.weight", 1), (f"{row}.weight", 0)):
                axes[name] = dense if len(self.shapes[name]) == 2 else 1 - dense
        return axes


def split(net: Net, strategy: str, devices: int, replicas: int = 1, **how: Any) -> Plan:
    """The plan by which `devices` in all train a net; `how`: further fields of a plan."""
    replicas = devices if strategy == "data" else replicas
    parts = {each.name: getattr(net, each.name) for each in fields(Net)}
    return Plan(**parts, strategy=strategy, devices=devices // replicas, replicas=replicas, **how)


def refusal(net: Net, strategy: str, devices: int, replicas: int = 1) -> str:
    """Why there is no such plan; empty if there is one."""
    group, rest = divmod(devices, replicas)
    if strategy != "data" and rest:
        groups = f"{replicas} groups of one size"
        return f"{groups} take a multiple of {replicas} devices, not {devices}"
    if strategy == "pipeline" and group > len(net.units):
        stages = f"a pipeline of {group} devices needs as many stages"
        return f"{stages}, and the net can be cut into {len(net.units)}"
    narrowest = min((net.shapes[f"{column}.bias"][0] for column, _ in net.pairs), default=0)
    if strategy == "tensor" and group > max(1, narrowest):
        return f"{group} devices cannot share the {narrowest} channels of the narrowest layer"
    return ""
