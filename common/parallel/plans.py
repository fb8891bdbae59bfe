"""Plans: how a net is split over devices, as data that runs and predictions share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from common.parallel.ledger import Group, Ledger, Usage, mesh
from common.parallel.nets import Net
from common.parallel.pipelines import Order, Pass, TimedPass, order, simulate
from common.parallel.shards import shard_bounds, shard_sizes


@dataclass(frozen=True)
class Part:
    """Entries of a tensor at some `places` along `axis`; None: of the flat tensor."""

    axis: int | None
    places: range | tuple[int, ...]

    @property
    def index(self) -> tuple[Any, ...]:
        """The index of the part, in the flat tensor if there is no axis."""
        places: Any = list(self.places)
        if isinstance(self.places, range):
            places = slice(self.places.start, self.places.stop)
        return (*(slice(None),) * (self.axis or 0), places)

    def of(self, values: Any) -> Any:
        """The part of an array."""
        return (values.reshape(-1) if self.axis is None else values)[self.index]

    def size(self, shape: Sequence[int]) -> int:
        """The number of elements of the part of a tensor of this shape."""
        length = math.prod(shape) if self.axis is None else shape[self.axis]
        return math.prod(shape) // length * len(self.places)


Layout = tuple[Part | None, ...]
"""The part of each device; None: it has nothing of the tensor."""

Layouts = Mapping[str, Layout]

_order = lru_cache(maxsize=1)(order)  # the same for each stage


@dataclass(frozen=True)
class Plan(Net):
    """A net that is split over `devices`, in each of `replicas` groups of devices.

    A strategy is a subclass. By itself, each device of a group has the whole net, updates all
    of it, computes with all examples of the group, and sends nothing to the others.

    `sizes` has the number of units in each stage of a pipeline; empty: stages are balanced. If it
    `clips`, devices sum the squares of the gradient. `exchange` is context parallelism's, which
    has tokens in zigzag order unless they are `contiguous`.
    """

    strategy: str
    devices: int
    replicas: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    sizes: Sequence[int] = ()
    clips: bool = False
    exchange: str = "ring"
    contiguous: bool = False

    words: ClassVar[str] = ""
    """The strategy, for a help."""

    sharded: ClassVar[bool] = False
    """Whether the devices of a group share its examples."""

    partial: ClassVar[bool] = False
    """Whether a device has the gradients of its tokens or examples, and no others."""

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        """Why a group of so many devices cannot train the net; empty if it can."""
        return ""

    @cached_property
    def stages(self) -> list[list[str]]:
        """The layers of each stage of a pipeline."""
        return self.cut(self.devices, self.sizes)

    def first_word(self, device: int) -> int:
        """The first word of those that a device has."""
        return 0

    def tokens_of(self, device: int) -> Sequence[int]:
        """The places of the tokens that a device has of each sequence; empty: of all."""
        return ()

    def taken_by(self, name: str) -> str:
        """The function of the net that takes a tensor, where a layer is more than one."""
        return "layer"

    def uses(self, layers: Sequence[str], what: Sequence[str]) -> list[str]:
        """The tensors of layers that these functions of the net take."""
        names = [name for layer in layers for name in self.tensors[layer]]
        return [name for name in names if what == ("layer",) or self.taken_by(name) in what]

    def rows_of(self, examples: int) -> list[slice]:
        """The examples of each replica; the last ones may have none."""
        return [slice(*bounds) for bounds in shard_bounds(examples, self.replicas)]

    def microbatches_of(self, examples: int) -> list[slice]:
        """The examples of each microbatch; without examples, one that is empty."""
        parts = max(1, min(self.microbatches, examples))
        return [slice(*bounds) for bounds in shard_bounds(examples, parts)]

    def shards_of(self, examples: int) -> list[list[slice]]:
        """For each microbatch, the examples of each device."""
        if not self.sharded:
            return [[rows] * self.devices for rows in self.microbatches_of(examples)]
        sizes = shard_sizes(examples, self.devices)
        count = max(1, min(self.microbatches, sizes[0]))
        parts = [part for size in sizes for part in shard_sizes(size, count)]
        rows = [slice(*bounds) for bounds in pairwise(accumulate(parts, initial=0))]
        return [rows[microbatch::count] for microbatch in range(count)]

    def order(self, microbatches: int) -> Order:
        """The passes of each device of a pipeline, in order."""
        return _order(self.schedule, self.devices, microbatches)

    def passes(self, microbatches: int) -> list[Pass]:
        """All passes of a pipeline, each after those that it needs."""
        return [event.done for event in simulate(self.order(microbatches))]

    def simulated(self, examples: int) -> list[TimedPass]:
        """The passes of a pipeline's first replica in a step, in units of time."""
        here = self.rows_of(examples)[0].stop
        return simulate(self.order(len(self.microbatches_of(here))))

    @cached_property
    def weights(self) -> Layouts:
        """Which device has which part of which weight."""
        return {name: self.whole(name) for name in self.shapes}

    @cached_property
    def updated(self) -> Layouts:
        """Which device updates which part of which weight, and so has its velocity."""
        return self.weights

    @cached_property
    def shared(self) -> list[str]:
        """The tensors that all devices have, whose partial gradients are summed once in a step."""
        names = self.shapes if self.partial else ()
        return [name for name in names if len({*self.weights[name]}) == 1]

    def whole(self, name: str, only: int | None = None) -> Layout:
        """The whole tensor on each device, or on only one."""
        whole = Part(0, range(self.shapes[name][0]))
        return tuple(whole if only in (None, i) else None for i in range(self.devices))

    def slices(self, name: str, axis: int | None = None) -> Layout:
        """A slice of the flat tensor, or along an axis, for each device."""
        shape = self.shapes[name]
        length = math.prod(shape) if axis is None else shape[axis]
        return tuple(Part(axis, range(*ends)) for ends in shard_bounds(length, self.devices))

    def counts(self, name: str, device: int) -> bool:
        """Whether a device is the first that updates this part of a tensor."""
        return self.updated[name].index(self.updated[name][device]) == device

    def count_sends(self, examples: int, row: Group) -> None:
        """Counts the messages within a replica, in a step on `examples`."""

    def count_sums(self, device: int, column: Group) -> None:
        """Counts the messages between a device of each replica: the sums of gradients."""
        sizes = self.sizes_of(self.updated, device).values()
        column.allreduce(sum(sizes), "gradients", len(sizes))

    def in_flight(self, examples: int, device: int) -> tuple[int, int]:
        """The most examples and microbatches whose activations a device keeps."""
        shards = [rows[device] for rows in self.shards_of(examples)]
        return max(rows.stop - rows.start for rows in shards), 1

    def activations_kept(self, device: int) -> tuple[int, int]:
        """The elements for each example: kept in flight, and recomputed for a microbatch."""
        return self.kept(self.layers)

    def sizes_of(self, layouts: Layouts, device: int) -> dict[str, int]:
        """The number of elements of each tensor of which a device has a part."""
        parts = {name: layout[device] for name, layout in layouts.items()}
        return {name: part.size(self.shapes[name]) for name, part in parts.items() if part}

    def elements_updated(self, device: int) -> int:
        """The number of elements of weights that a device updates."""
        return sum(self.sizes_of(self.updated, device).values())

    def weights_kept(self, device: int) -> int:
        """The most elements of weights that a device keeps."""
        return sum(self.sizes_of(self.weights, device).values())

    def gradients_kept(self, device: int, examples: int) -> int:
        """The most elements of gradients that a device keeps in a step."""
        return self.elements_updated(device)

    def usage(self, examples: int, itemsize: int, state: int | None = None) -> Usage:
        """Predicts the traffic and the memory of a step; a run has to count the same.

        An element has `itemsize` bytes. The optimizer keeps `state` bytes for each element;
        None: one element, as SGD with momentum does.
        """
        state = itemsize if state is None else state
        ledger = Ledger(self.replicas * self.devices, itemsize)
        rows, columns = mesh(range(ledger.devices), self.replicas, ledger)
        shared = self.sizes_of({x: self.weights[x] for x in self.shared}, 0).values()
        for row, shard in zip(rows, self.rows_of(examples), strict=True):
            here = shard.stop - shard.start
            self.count_sends(here, row)
            row.allreduce(sum(shared), "gradients", len(shared))
            if self.clips:
                row.allreduce(1, "gradients")
            for device, number in enumerate(row.numbers):
                ledger.live[number] = self.in_flight(here, device)[1]
                for kind, size in self.memory(here, device, itemsize, state).items():
                    ledger.peak[kind][number] = size
        for device, column in enumerate(columns):
            self.count_sums(device, column)
        return ledger.usage(examples)

    def memory(self, examples: int, device: int, itemsize: int, state: int) -> dict[str, int]:
        """The peak bytes of a device by kind, where its replica has so many examples."""
        kept, recomputed = self.activations_kept(device)
        microbatch, _ = Plan.in_flight(self, examples, device)
        kept = kept * self.in_flight(examples, device)[0] + recomputed * microbatch
        return {
            "weights": itemsize * self.weights_kept(device),
            "gradients": itemsize * self.gradients_kept(device, examples),
            "momentum": state * self.elements_updated(device),
            "activations": itemsize * kept,
        }
