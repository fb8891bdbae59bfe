"""All-reduce by any schedule, and by MXNet's kvstore."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import mxnet as mx
from mxnet import np

from common.parallel.replicas import share_of
from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_bounds
from frameworks.mxnet import hosts
from frameworks.mxnet.hosts import all_gather_tensors

Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]


def flatten(params: Params) -> Tensor:
    """All tensors of a device as one vector."""
    return join([param.reshape(-1) for param in params.values()])


def unflatten(vector: Tensor, like: Params) -> Params:
    """The inverse of `flatten`, into the shapes of `like`."""
    stops = list(accumulate(param.size for param in like.values()))
    bounds = zip([0, *stops[:-1]], stops, strict=True)
    return {
        name: vector[a:b].reshape(param.shape)
        for (name, param), (a, b) in zip(like.items(), bounds, strict=True)
    }


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    # Over hosts each process does all of it: MXNet has no messages from one process to another.
    bounds = shard_bounds(data[0].size, schedule.chunks)
    vectors = [tensor.reshape(-1) for tensor in all_gather_tensors(data)]
    held = [[vector[a:b].copy() for a, b in bounds] for vector in vectors]
    execute(schedule, held, lambda chunk, i: chunk.copyto(vectors[i].ctx))
    summed = zip(share_of(held, hosts), data, strict=True)
    return [join(chunks).as_in_ctx(tensor.ctx).reshape(tensor.shape) for chunks, tensor in summed]


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
    if hosts.processes() > 1:
        return hosts.summed_by_servers(data)
    return summed_by("device", data)


def summed_by(kvstore: str, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces tensors of this process by a local kvstore."""
    summed = [tensor.copy() for tensor in data]
    store = store_for(kvstore, len(data), data[0].shape, data[0].dtype)
    store.pushpull(0, list(data), out=summed)
    return summed


@cache
def store_for(kvstore: str, devices: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """A kvstore for tensors of this shape: on GPUs it is costly to make."""
    store = mx.kvstore.create(kvstore)
    store.init(0, np.zeros(shape, dtype))
    return store
