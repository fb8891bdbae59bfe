"""All-reduce by any schedule, and by MXNet's kvstore."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import mxnet as mx
from mxnet import np

from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_bounds

Tensor: TypeAlias = np.ndarray


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    bounds = shard_bounds(data[0].size, schedule.chunks)
    vectors = [tensor.reshape(-1) for tensor in data]
    held = [[vector[a:b].copy() for a, b in bounds] for vector in vectors]
    execute(schedule, held, lambda chunk, i: chunk.copyto(vectors[i].ctx))
    return [join(chunks).reshape(data[0].shape) for chunks in held]


def join(chunks: Sequence[Tensor]) -> Tensor:
    """Vectors of one device, one after the other, as one vector."""
    stops = list(accumulate(len(chunk) for chunk in chunks))
    joined = np.empty(stops[-1], chunks[0].dtype, ctx=chunks[0].ctx)
    # Copied into views, because np.concatenate moves one number after the other.
    for a, b, chunk in zip([0, *stops[:-1]], stops, chunks, strict=True):
        if b > a:  # MXNet cannot copy nothing
            chunk.copyto(joined[a:b])
    return joined


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by a kvstore."""
    summed = [tensor.copy() for tensor in data]
    store = store_for(len(data), data[0].shape, data[0].dtype)
    store.pushpull(0, list(data), out=summed)
    return summed


@cache
def store_for(devices: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """A kvstore for tensors of this shape: on GPUs it is costly to make."""
    store = mx.kvstore.create("device")
    store.init(0, np.zeros(shape, dtype))
    return store
