"""Copies of one set of weights, on devices of one process or of several: all have to be the same.

That holds for data parallelism. What splits the weights keeps them in a way of its own.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.models.nets import trainable

T = TypeVar("T")


class Communicator(Protocol):
    """How the processes of a run reach each other: the `hosts.py` of each framework is one."""

    def processes(self) -> int:
        """How many there are."""

    def rank(self) -> int:
        """The number of this one, from 0."""

    def gathered(self, values: Array) -> Array:
        """What each process has as `values`, by rank, (processes, ...).

        All call it, with floating-point numbers of one shape and dtype.
        """


def share_of(parts: Sequence[T], hosts: Communicator) -> Sequence[T]:
    """The share of this process in what there is for each device, in the order of all."""
    share = len(parts) // hosts.processes()
    return parts[hosts.rank() * share : (hosts.rank() + 1) * share]


def joined(rows: Array, hosts: Communicator) -> Array:
    """What all processes have as rows (n, ...), one after the other; each has its own n."""
    if hosts.processes() == 1:
        return rows
    counts = hosts.gathered(np.array([len(rows)], np.float64)).astype(int).ravel()
    padded = np.zeros((counts.max(), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = hosts.gathered(padded)
    return np.concatenate([each[:n] for each, n in zip(found, counts, strict=True)])


def same_everywhere(copies: Sequence[Weights], hosts: Communicator) -> Weights:
    """The first of the copies, once those of all processes are the same bit for bit.

    `copies` are those of this process's devices; between processes digests travel in their place.
    Every device applies the same summed gradient to the same weights, so any difference is an
    error in allreduce or in the update. Raises RunError that names the device and the tensor.
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
    """The weights of each copy, and its running statistics: each device has its own of these."""
    weights = [{name: copy[name] for name in copy if trainable(name)} for copy in copies]
    statistics = [{name: copy[name] for name in copy if not trainable(name)} for copy in copies]
    return weights, statistics


def stacked(statistics: Sequence[Weights], hosts: Communicator) -> Weights:
    """All devices' running statistics, as (k, channels)."""
    stacks = {name: np.stack([own[name] for own in statistics]) for name in statistics[0]}
    return {name: joined(stack, hosts) for name, stack in stacks.items()}


def saved_of(saved: Mapping[str, Array], device: int) -> Weights:
    """What was saved of one device: the weights, and running statistics of its own.

    They are (k, channels) in `saved`, and (channels,) here. Those of device 0, if there was no such
    device.
    """
    return {
        name: values if trainable(name) else values[device if device < len(values) else 0]
        for name, values in saved.items()
    }
