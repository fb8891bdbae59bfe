"""Allreduce by any schedule, and by JAX's own collective."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import jax
import numpy as np
from jax import Array as Tensor, numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_bounds

Params = dict[str, Tensor]


def allreduce_by(algorithm: str, grads: Sequence[Params]) -> list[Params]:
    """The sum of k devices' gradients, on each of them; they travel as one vector."""
    vectors = [flatten(grad) for grad in grads]
    if algorithm == "native":
        summed = native(vectors)
    else:
        summed = by_schedule(SCHEDULES[algorithm](len(vectors)), vectors)
    return [unflatten(vector, grad) for vector, grad in zip(summed, grads, strict=True)]


@jax.jit
def flatten(params: Params) -> Tensor:
    """All tensors of a device as one vector."""
    return jnp.concatenate([param.ravel() for param in params.values()])


@jax.jit
def unflatten(vector: Tensor, like: Params) -> Params:
    """The inverse of `flatten`, into the shapes of `like`."""
    stops = list(accumulate(param.size for param in like.values()))
    parts = jnp.split(vector, stops[:-1])
    return {
        name: part.reshape(param.shape)
        for (name, param), part in zip(like.items(), parts, strict=True)
    }


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of vectors that lie on k devices, on each of them, moved as the schedule says."""
    bounds = shard_bounds(len(data[0]), schedule.chunks)
    held = [[vector[a:b] for a, b in bounds] for vector in data]
    execute(schedule, held, lambda chunk, i: jax.device_put(chunk, data[i].device))
    return [jnp.concatenate(chunks) for chunks in held]


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by `lax.psum`."""
    mesh = Mesh(np.array([tensor.device for tensor in data]), ("device",))
    layout = NamedSharding(mesh, P("device"))
    shape = (len(data), *data[0].shape)
    parts = [tensor[None] for tensor in data]
    summed = total(jax.make_array_from_single_device_arrays(shape, layout, parts), mesh)
    return [shard.data[0] for shard in summed.addressable_shards]


@partial(jax.jit, static_argnums=1)
def total(parts: Tensor, mesh: Mesh) -> Tensor:
    """Each device's part (k, n) to the sum of all, once for each device."""
    own = P("device")

    @jax.shard_map(mesh=mesh, in_specs=own, out_specs=own)
    def on_device(part: Tensor) -> Tensor:
        summed: Tensor = jax.lax.psum(part, "device")
        return summed

    return on_device(parts)
