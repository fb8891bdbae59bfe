"""Sums over the devices of several processes, added in the order of the devices."""

from functools import partial
from typing import Any

import jax
from jax import Array as Tensor, numpy as jnp
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, PartitionSpec as P


def add_in_order() -> None:
    """From now on `lax.psum`, and its gradient, adds over processes as it does in one.

    Within a process XLA adds what devices have in their order. Between processes gloo begins each
    part of a sum with another device, and from three devices on gives other bits.
    """
    for primitive in primitives():
        mlir.register_lowering(primitive, lowered, platform="cpu")


def primitives() -> set[Any]:
    """The primitives of `lax.psum`, with and without types that vary over devices."""
    mesh, found = AbstractMesh((2,), ("device",)), set()
    for typed in (False, True):
        total = partial(jax.lax.psum, axis_name="device")
        axis = P("device")
        mapped = jax.shard_map(total, mesh=mesh, in_specs=axis, out_specs=P(), check_vma=typed)
        (program,) = jax.make_jaxpr(mapped)(jax.ShapeDtypeStruct((2,), "float32")).eqns
        found |= {each.primitive for each in program.params["jaxpr"].eqns}
    return found


def lowered(context: Any, x: Any, *, axes: tuple[Any, ...], axis_index_groups: None = None) -> Any:
    """What a sum is compiled to."""
    return mlir.lower_fun(partial(over, axes=axes), multiple_results=False)(context, x)


def over(x: Tensor, axes: tuple[Any, ...]) -> Tensor:
    """The sum over axes of the array, which have numbers as `vmap` gives them, and over devices."""
    named = tuple(axis for axis in axes if not isinstance(axis, int))
    if positions := tuple(axis for axis in axes if isinstance(axis, int)):
        x = x.sum(positions)
    return added(x, named) if named else x


def added(x: Tensor, axes: tuple[str, ...]) -> Tensor:
    """The sum over all devices: each adds up one part, which then all get from it.

    That is as much to send as with gloo's own sum, which takes 0.6 to 1 times as long.
    """
    k = jax.lax.axis_size(axes)
    parts = jnp.pad(x.ravel(), (0, -x.size % k)).reshape(k, -1)
    first, *others = jax.lax.all_to_all(parts, axes, 0, 0, tiled=True)
    for other in others:
        first += other
    total: Tensor = jax.lax.all_gather(first, axes, tiled=True, to="invarying")
    return total[: x.size].reshape(x.shape)
