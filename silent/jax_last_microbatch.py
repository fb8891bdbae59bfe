"""`dynamic_slice` moves a microbatch that reaches past the end: examples count twice.

Written: a minibatch of 11 examples in three microbatches of four, whose sums are added.
Expected: the sum over the minibatch.
"""

import jax
import jax.numpy as jnp
from jax.lax import dynamic_slice_in_dim, fori_loop

from silent.report import report

X = jnp.arange(1.0, 12.0)
SIZE, MICROBATCHES = 4, 3


def sliced(i: int, total: jax.Array) -> jax.Array:
    return total + dynamic_slice_in_dim(X, i * SIZE, SIZE).sum()


def padded(i: int, total: jax.Array) -> jax.Array:
    room = SIZE * MICROBATCHES - len(X)
    part = dynamic_slice_in_dim(jnp.pad(X, (0, room)), i * SIZE, SIZE)
    mask = jnp.arange(SIZE) + i * SIZE < len(X)
    return total + (part * mask).sum()


if __name__ == "__main__":
    results = {"dynamic_slice_in_dim": fori_loop(0, MICROBATCHES, sliced, 0.0)}
    remedies = {"pad, slice and mask": fori_loop(0, MICROBATCHES, padded, 0.0)}
    report(f"jax {jax.__version__}", X.sum(), results, remedies)
