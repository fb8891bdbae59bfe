"""Attention to some of the tokens, as context parallelism puts it together, in JAX.

Queries `q` are (n, a, T, d) for some tokens, keys and values `kv` (n, a, S, 2d) for others; `mask`
(T, S) is added to their scores: it hides keys of later tokens.
"""

import math

import jax
from jax import Array as Tensor, numpy as jnp


def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """How well each query and key fit (n, a, T, S)."""
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + mask


@jax.jit
def attend_part(q: Tensor, kv: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of these alone, and the logarithm of its sum of exponentials (n, a, T, 1)."""
    k, v = jnp.split(kv, 2, -1)
    fit = scores(q, k, mask)
    most = fit.max(-1, keepdims=True)
    exponentials = jnp.exp(fit - most)
    sums = exponentials.sum(-1, keepdims=True)
    return exponentials @ v / sums, jnp.log(sums) + most


@jax.jit
def merge(Y: Tensor, log_sums: Tensor, more: Tensor, more_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of two parts together: each weighs as its sum of exponentials."""
    most = jnp.maximum(log_sums, more_sums)
    total = jnp.log(jnp.exp(log_sums - most) + jnp.exp(more_sums - most)) + most
    return jnp.exp(log_sums - total) * Y + jnp.exp(more_sums - total) * more, total


@jax.jit
def part_backward(
    q: Tensor, kv: Tensor, Y: Tensor, log_sums: Tensor, grad: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `q` and `kv`, from the output of all parts, and its gradient."""
    k, v = jnp.split(kv, 2, -1)
    weights = jnp.exp(scores(q, k, mask) - log_sums)
    of_weights = grad @ v.swapaxes(-1, -2) - (grad * Y).sum(-1, keepdims=True)
    of_scores = weights * of_weights / math.sqrt(q.shape[-1])
    of_k, of_v = of_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ grad
    return of_scores @ k, jnp.concatenate([of_k, of_v], -1)
