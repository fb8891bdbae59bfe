"""Sums over the devices of several processes, added in the order of the devices."""

from functools import partial
from typing import Any

import jax
from jax import Array as Tensor, numpy as jnp
from jax._src.lax import parallel
from jax.interpreters import mlir


def add_in_order() -> None:
    """From now on `lax.psum`, and its gradient, adds over processes as it does in one.

    Within a process XLA adds what devices have in their order. Between processes gloo begins each
    part of a sum with another device, and from three devices on gives other bits.
    """
    for primitive in (parallel.psum_p, parallel.psum_invariant_p):
        mlir.register_lowering(primitive, lowered, platform="cpu")


def lowered(context: Any, x: Any, *, axes: tuple[str, ...], axis_index_groups: None = None) -> Any:
    """What a sum is compiled to."""
    return mlir.lower_fun(partial(added, axes=axes), multiple_results=False)(context, x)


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
