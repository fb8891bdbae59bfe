"""Weights on the devices of a run: copies of all, or parts of each, with the same bits anywhere."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.models.nets import Shapes, trainable
from common.parallel.plans import Layouts, Part

T = TypeVar("T")


class Communicator(Protocol):
    """The process group of a run: `hosts.py` of each framework."""

    def processes(self) -> int:
        """The world size."""

    def rank(self) -> int:
        """The rank of this process."""

    def gathered(self, values: Array) -> Array:
        """All processes' `values` of one shape and floating-point dtype, (processes, ...)."""


def share_of(parts: Sequence[T], hosts: Communicator) -> Sequence[T]:
    """The parts of this process's devices, of those of all devices."""
    share = len(parts) // hosts.processes()
    return parts[hosts.rank() * share : (hosts.rank() + 1) * share]


def joined(rows: Array, hosts: Communicator) -> Array:
    """The rows (n, ...) of all processes by rank; each has its own n."""
    if hosts.processes() == 1:
        return rows
    counts = hosts.gathered(np.array([len(rows)], np.float64)).astype(int).ravel()
    padded = np.zeros((counts.max(), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = hosts.gathered(padded)
    return np.concatenate([each[:n] for each, n in zip(found, counts, strict=True)])


def same_everywhere(copies: Sequence[Weights], hosts: Communicator) -> Weights:
    """The first of the copies of this process's devices, if those of all processes are the same.

    Between processes, digests are compared. Any difference is an error of the allreduce or of the
    update. Raises RunError that names the device and the tensor.
    """
    first, *others = copies
    for index, copy in enumerate(others, start=1):
        for name, values in first.items():
            if values.tobytes() != copy[name].tobytes():
                raise diverged(name, hosts.rank() * len(copies) + index)
    if hosts.processes() == 1:
        return first
    digests = [hashlib.sha256(values.tobytes()).digest() for values in first.values()]
    found = hosts.gathered(np.array([list(each) for each in digests], np.float64))
    for rank, theirs in enumerate(found):
        for name, same in zip(first, (theirs == found[0]).all(axis=1), strict=True):
            if not same:
                raise diverged(name, rank * len(copies))
    return first


def diverged(name: str, device: int) -> RunError:
    """The error of a device whose copy of a tensor is not that of device 0."""
    message = f"{name} on device {device} differs from its copy on device 0"
    return RunError(message, tensor=name, device=device)


def split_statistics(copies: Sequence[Weights]) -> tuple[list[Weights], list[Weights]]:
    """The weights of each copy, and its running statistics."""
    weights = [{name: copy[name] for name in copy if trainable(name)} for copy in copies]
    statistics = [{name: copy[name] for name in copy if not trainable(name)} for copy in copies]
    return weights, statistics


def stacked(statistics: Sequence[Weights], hosts: Communicator) -> Weights:
    """All devices' running statistics, as (k, channels)."""
    stacks = {name: np.stack([own[name] for own in statistics]) for name in statistics[0]}
    return {name: joined(stack, hosts) for name, stack in stacks.items()}


def saved_of(saved: Mapping[str, Array], device: int) -> Weights:
    """The saved weights, and the running statistics (channels,) of one of k devices.

    Those of device 0, if there was no such device.
    """
    return {
        name: values if trainable(name) else values[device if device < len(values) else 0]
        for name, values in saved.items()
    }


def parts_of(tensors: Mapping[str, Array], layouts: Layouts, device: int) -> Weights:
    """A device's part of each tensor of which it has one."""
    parts = {name: layouts[name][device] for name in tensors}
    return {name: part.of(tensors[name]) for name, part in parts.items() if part is not None}


def whole(held: Sequence[Mapping[str, Array]], layouts: Layouts, shapes: Shapes) -> Weights:
    """The whole tensors from each device's parts of them.

    Raises RunError if two devices have the same part of a tensor, but not the same bits.
    """
    tensors: Weights = {}
    for name, layout in layouts.items():
        found: dict[Part, Array] = {}
        for device, part in enumerate(layout):
            if part is not None:
                values = held[device][name]
                if found.setdefault(part, values).tobytes() != values.tobytes():
                    raise diverged(name, device)
        tensors[name] = np.empty(shapes[name], next(iter(found.values())).dtype)
        for part, values in found.items():
            part.of(tensors[name])[...] = values
    return tensors
