"""How a minibatch is divided over the devices: one rule, for every framework."""

from collections.abc import Mapping, Sequence

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.models.nets import trainable


def shard_sizes(examples: int, shards: int) -> list[int]:
    """The sizes of `shards` consecutive shards; the first ones hold one more where it is uneven.

    They add up to `examples` and differ by at most one. A shard is empty only where there are
    fewer examples than shards, as in the last minibatch of an epoch. Raises ValueError for a
    negative number of examples or less than one shard.
    """
    if examples < 0 or shards < 1:
        raise ValueError(f"cannot split {examples} examples into {shards} shards")
    size, larger = divmod(examples, shards)
    return [size + 1] * larger + [size] * (shards - larger)


def shard_bounds(examples: int, shards: int) -> list[tuple[int, int]]:
    """Where each shard of `shard_sizes` begins and ends, as (start, stop)."""
    stops = np.cumsum(shard_sizes(examples, shards)).tolist()
    return list(zip([0, *stops[:-1]], stops, strict=True))


def same_everywhere(copies: Sequence[Weights]) -> Weights:
    """The first of the replicas' weights, once all are known to be the same bit for bit.

    Every device applies the same summed gradient to the same weights, so any difference is an
    error in allreduce or in the update. Raises RunError that names the replica and the tensor.
    """
    first, *others = copies
    for index, copy in enumerate(others, start=1):
        for name, values in first.items():
            if values.tobytes() != copy[name].tobytes():
                raise diverged(name, index)
    return first


def diverged(name: str, device: int) -> RunError:
    """What to raise if a device's copy of a tensor is another than that of device 0."""
    message = f"{name} on device {device} differs from its copy on device 0"
    return RunError(message, tensor=name, device=device)


def saved_of(saved: Mapping[str, Array], device: int) -> Weights:
    """What a chapter has saved of one device: the weights, and running statistics of its own.

    They are (k, channels) in `saved`, and (channels,) here. Those of device 0, if there was no such
    device.
    """
    return {
        name: values if trainable(name) else values[device if device < len(values) else 0]
        for name, values in saved.items()
    }
