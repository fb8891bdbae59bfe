"""Allreduce by any schedule, and by MXNet's own kvstore."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import mxnet as mx
from mxnet import np

from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_bounds
from frameworks.mxnet.hosts import everyones, everywhere, own, summed_by_servers

Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]


def allreduce_by(algorithm: str, grads: Sequence[Params]) -> list[Params]:
    """The sum of k devices' gradients, on each of them; they travel as one vector."""
    vectors = [flatten(grad) for grad in grads]
    if algorithm == "native":
        summed = native(vectors)
    else:
        summed = by_schedule(SCHEDULES[algorithm](everywhere(vectors)), vectors)
    return [unflatten(vector, grad) for vector, grad in zip(summed, grads, strict=True)]


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
    """The sum of vectors that lie on k devices, on each of them, moved as the schedule says.

    Over hosts each process does all of it: MXNet has no messages from one process to another.
    """
    bounds, places = shard_bounds(len(data[0]), schedule.chunks), everyones(data)
    held = [[vector[a:b].copy() for a, b in bounds] for vector in places]
    execute(schedule, held, lambda chunk, i: chunk.copyto(places[i].ctx))
    summed = zip(own(held), data, strict=True)
    return [join(chunks).as_in_ctx(vector.ctx) for chunks, vector in summed]


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
    if everywhere(data) > len(data):
        return summed_by_servers(data)
    return summed_by("device", data)


def summed_by(kvstore: str, data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors of this process by a kvstore of its own, where each of them lies."""
    summed = [tensor.copy() for tensor in data]
    store = store_for(kvstore, len(data), len(summed[0]), summed[0].dtype)
    store.pushpull(0, list(data), out=summed)
    return summed


@cache
def store_for(kvstore: str, devices: int, entries: int, dtype: Any) -> Any:
    """A kvstore for vectors of so many entries: on GPUs it is costly to make."""
    store = mx.kvstore.create(kvstore)
    store.init(0, np.zeros(entries, dtype))
    return store
