"""All-reduce by any schedule, and by JAX's collective."""

from collections.abc import Sequence
from functools import partial

import jax
from jax import Array as Tensor, numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_bounds

AXIS = "device"
"""The axis of a mesh of all devices."""


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
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
    mesh = Mesh([tensor.device for tensor in data], (AXIS,))
    shape, layout = (mesh.size, *data[0].shape), NamedSharding(mesh, P(AXIS))
    parts = [tensor[None] for tensor in data]
    summed = total(jax.make_array_from_single_device_arrays(shape, layout, parts), mesh)
    return [shard.data[0] for shard in summed.addressable_shards]


@partial(jax.jit, static_argnums=1)
def total(parts: Tensor, mesh: Mesh) -> Tensor:
    """Each device's part (k, ...) to the sum of all, once for each device."""
    sharded = P(AXIS)

    @jax.shard_map(mesh=mesh, in_specs=sharded, out_specs=sharded)
    def on_device(part: Tensor) -> Tensor:
        summed: Tensor = jax.lax.psum(part, AXIS)
        return summed

    return on_device(parts)
