"""All-reduce by any schedule, and by JAX's collective."""

from collections.abc import Sequence
from functools import partial

import jax
import numpy as np
from jax import Array as Tensor, numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P

from common.parallel.schedules import Round, Schedule, Transfer, execute
from common.parallel.shards import shard_bounds
from frameworks.jax.hosts import mesh_of, stacked

AXIS = "device"
"""The axis of a mesh of all devices."""


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    if schedule.devices > len(data):
        parts = stacked(data, AXIS)
        return parts_of(with_others(parts, mesh_of(parts), schedule))
    bounds = shard_bounds(data[0].size, schedule.chunks)
    held = [cut(tensor, tuple(bounds)) for tensor in data]
    execute(schedule, held, lambda chunk, i: jax.device_put(chunk, data[i].device))
    return [concatenated(chunks, data[0].shape) for chunks in held]


@partial(jax.jit, static_argnums=1)
def cut(tensor: Tensor, bounds: Sequence[tuple[int, int]]) -> list[Tensor]:
    """The chunks of a tensor, as vectors."""
    vector = tensor.ravel()
    return [vector[a:b] for a, b in bounds]


@partial(jax.jit, static_argnums=1)
def concatenated(chunks: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    """The inverse of `cut`."""
    return jnp.concatenate(chunks).reshape(shape)


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by `lax.psum`."""
    parts = stacked(data, AXIS)
    return parts_of(total(parts, mesh_of(parts)))


def parts_of(parts: Tensor) -> list[Tensor]:
    """Each device's part of (k, ...), of those that this process has."""
    return [shard.data[0] for shard in parts.addressable_shards]


@partial(jax.jit, static_argnums=1)
def total(parts: Tensor, mesh: Mesh) -> Tensor:
    """Each device's part (k, ...) to the sum of all, once for each device."""
    sharded = P(AXIS)

    @jax.shard_map(mesh=mesh, in_specs=sharded, out_specs=sharded)
    def on_device(part: Tensor) -> Tensor:
        summed: Tensor = jax.lax.psum(part, AXIS)
        return summed

    return on_device(parts)


@partial(jax.jit, static_argnums=(1, 2))
def with_others(parts: Tensor, mesh: Mesh, schedule: Schedule) -> Tensor:
    """The same as `total`, moved as the schedule says: from process to process, too."""
    sharded, n = P(AXIS), parts[0].size
    bounds = shard_bounds(n, schedule.chunks)

    @jax.shard_map(mesh=mesh, in_specs=sharded, out_specs=sharded)
    def on_device(part: Tensor) -> Tensor:
        # Messages of a moment are of one length; the shorter ones carry what follows them, too.
        vector = jnp.pad(part.ravel(), (0, n))
        for transfers in schedule.rounds:
            before = vector
            for step in at_once(transfers):
                vector = moved(step, before, vector, bounds)
        return vector[:n].reshape(part.shape)

    return on_device(parts)


def at_once(transfers: Round) -> list[list[Transfer]]:
    """Splits a round into steps; in each, a device sends and receives at most once."""
    parts: list[list[Transfer]] = []
    for t in transfers:
        earlier = [i for i, part in enumerate(parts) if t.target in {each.target for each in part}]
        for part in parts[max(earlier, default=-1) + 1 :]:
            if t.source not in {each.source for each in part}:
                part.append(t)
                break
        else:
            parts.append([t])
    return parts


def moved(
    transfers: Sequence[Transfer], before: Tensor, vector: Tensor, bounds: Sequence[tuple[int, int]]
) -> Tensor:
    """A device's vector (n,) after the round; messages carry values from `before` it."""
    # All devices run this one program: where each one's message begins is a number in a table.
    k = jax.lax.axis_size(AXIS)
    sends, takes, sizes, adds = (np.zeros(k, np.int32) for _ in range(4))
    for t in transfers:
        start, stop = bounds[t.chunks[0]][0], bounds[t.chunks[-1]][1]
        sends[t.source] = takes[t.target] = start
        sizes[t.target], adds[t.target] = stop - start, t.adds
    longest, device = sizes.max(), jax.lax.axis_index(AXIS)
    send, take, size, add = (jnp.asarray(table)[device] for table in (sends, takes, sizes, adds))
    message = jax.lax.dynamic_slice(before, (send,), (longest,))
    arrived = jax.lax.ppermute(message, AXIS, [(t.source, t.target) for t in transfers])
    there = jax.lax.dynamic_slice(vector, (take,), (longest,))
    fresh = jnp.where(add, there + arrived, arrived)
    kept = jnp.where(jnp.arange(longest) < size, fresh, there)
    return jax.lax.dynamic_update_slice(vector, kept, (take,))
