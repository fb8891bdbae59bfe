"""Layouts: which device has which part of a tensor."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def replicated(shape: Sequence[int], devices: int) -> Layout:
    """Every device has the whole tensor."""
    return (Part(0, 0, shape[0]),) * devices


def sharded(shape: Sequence[int], axis: int, devices: int) -> Layout:
    """Each device has a slice along an axis; sizes differ by at most one."""
    return tuple(Part(axis, *bounds) for bounds in shard_bounds(shape[axis], devices))


def flat(shape: Sequence[int], devices: int) -> Layout:
    """Each device has a slice of the flat tensor."""
    return tuple(Part(None, *bounds) for bounds in shard_bounds(math.prod(shape), devices))


def on_stage(shape: Sequence[int], stage: int, devices: int) -> Layout:
    """One device has the whole tensor."""
    whole = Part(0, 0, shape[0])
    return tuple(whole if device == stage else None for device in range(devices))
