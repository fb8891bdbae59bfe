"""Weights on the devices of a run: copies, or parts, with the same bits anywhere."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.models.nets import trainable

Gather = Callable[[Array], Array]
"""Called by all processes with `values` of one shape and dtype: (processes, ...), by rank."""


def alone(values: Array) -> Array:
    """The values of the only process."""
    return values[None]


def joined(rows: Array, gathered: Gather) -> Array:
    """The rows (n, ...) of all processes by rank; each has its own n."""
    counts = gathered(np.array([len(rows)], np.float64)).astype(int).ravel()
    padded = np.zeros((counts.max(), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    everywhere = zip(gathered(padded), counts, strict=True)
    return np.concatenate([rows[:count] for rows, count in everywhere])


def same_everywhere(copies: Sequence[Weights], gathered: Gather = alone) -> Weights:
    """The first of the copies of this process's devices, if those of all are the same.

    Any difference is an error of the allreduce or of the update. Raises RunError that names
    the device and the tensor.
    """
    names = list(copies[0])
    values = [[copy[name].tobytes() for name in names] for copy in copies]
    local = [[list(hashlib.sha256(bits).digest()) for bits in copy] for copy in values]
    digests = joined(np.array(local, np.float64), gathered)
    for device, same in enumerate((digests == digests[0]).all(axis=2)):
        if not same.all():
            raise diverged(names[same.argmin()], device)
    return copies[0]


def diverged(name: str, device: int) -> RunError:
    message = f"{name} on device {device} differs from its copy on device 0"
    return RunError(message, tensor=name, device=device)


def saved_state(copies: Sequence[Weights], gathered: Gather = alone) -> Weights:
    """Weights, and all devices' running statistics as (k, channels). Raises RunError if unlike."""
    weights = [{name: copy[name] for name in copy if trainable(name)} for copy in copies]
    names = [name for name in copies[0] if not trainable(name)]
    stacks = {name: np.stack([copy[name] for copy in copies]) for name in names}
    same = same_everywhere(weights, gathered)
    return same | {name: joined(stack, gathered) for name, stack in stacks.items()}


def saved_of(saved: Mapping[str, Array], device: int) -> Weights:
    """The saved weights, and a device's running statistics, or those of device 0."""
    return {
        name: values if trainable(name) else values[device if device < len(values) else 0]
        for name, values in saved.items()
    }
