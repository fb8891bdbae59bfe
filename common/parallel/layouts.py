"""Layouts: which device has which part of which tensor. No framework is needed to know that.

A layout has a `Part` for each device, or None where a device has nothing of the tensor.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.parallel.shards import shard_bounds


@dataclass(frozen=True)
class Part:
    """The entries from `start` to `stop` of a tensor along `axis`.

    With `axis` None, those of its numbers written in one row, as a vector.
    """

    axis: int | None
    start: int
    stop: int

    def of(self, values: Any) -> Any:
        """The part of an array; a view, where NumPy can give one."""
        if self.axis is None:
            return values.reshape(-1)[self.start : self.stop]
        return values[(slice(None),) * self.axis + (slice(self.start, self.stop),)]

    def size(self, shape: Sequence[int]) -> int:
        """How many numbers of a tensor of this shape it has."""
        length = math.prod(shape) if self.axis is None else shape[self.axis]
        return math.prod(shape) // length * (self.stop - self.start)


Layout = tuple[Part | None, ...]

Layouts = Mapping[str, Layout]
"""That of each tensor, by its name."""


def replicated(shape: Sequence[int], devices: int) -> Layout:
    """Every device has the whole tensor."""
    return (Part(0, 0, shape[0]),) * devices


def sharded(shape: Sequence[int], axis: int, devices: int) -> Layout:
    """Each device has a slice along an axis; sizes differ by at most one."""
    return tuple(Part(axis, *bounds) for bounds in shard_bounds(shape[axis], devices))


def flat(shape: Sequence[int], devices: int) -> Layout:
    """Each device has a slice of the tensor's numbers in one row."""
    return tuple(Part(None, *bounds) for bounds in shard_bounds(math.prod(shape), devices))


def on_stage(shape: Sequence[int], stage: int, devices: int) -> Layout:
    """One device has the whole tensor, the others have nothing of it."""
    whole = Part(0, 0, shape[0])
    return tuple(whole if device == stage else None for device in range(devices))
