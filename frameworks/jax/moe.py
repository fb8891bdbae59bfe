"""A mixture of experts from scratch, in JAX: of each token, a router chooses some.

A hidden state is (n, s, h), probabilities and choices (n, s, E). What an expert takes is in slots,
the routes (n, s, E, slots) are 1 where a token is. Of the experts, a device may have some.
"""

from collections.abc import Mapping
from functools import partial

import jax
from jax import Array as Tensor, numpy as jnp

from frameworks.jax.gpt import enter, gelu, layer, loss

__all__ = ["enter", "layer", "loss"]

Params = Mapping[str, Tensor]


@partial(jax.jit, static_argnums=0)
def probabilities(name: str, X: Tensor, params: Params) -> Tensor:
    """The router's probabilities of all experts, from each token's state after the norm."""
    return jax.nn.softmax(X @ params[f"{name}.router.weight"])


@partial(jax.jit, static_argnums=0)
def choices(k: int, probabilities: Tensor) -> Tensor:
    """1 at the `k` most probable experts of each token, else 0."""
    least = jax.lax.top_k(probabilities, k)[0][..., -1:]
    return (probabilities >= least).astype(probabilities.dtype)


@jax.jit
def load(chosen: Tensor) -> Tensor:
    """How many tokens chose each expert (E,)."""
    return chosen.sum((0, 1))


@partial(jax.jit, static_argnums=0)
def routes(slots: int, chosen: Tensor) -> Tensor:
    """The slot of each token at its experts, in order; if all are taken, an expert drops it."""
    tokens = chosen.reshape(-1, chosen.shape[-1])
    places = (tokens.cumsum(0) * tokens - 1).reshape(chosen.shape)  # -1 where it is not chosen
    return (places[..., None] == jnp.arange(slots)).astype(chosen.dtype)


@jax.jit
def dispatch(gates: Tensor, routes: Tensor, X: Tensor) -> Tensor:
    """Tokens, times their gates (n, s, E), in the slots of experts (E, slots, h); else zeros."""
    return jnp.einsum("nsec,nsh->ech", gates[..., None] * routes, X)


@partial(jax.jit, static_argnums=0)
def experts(name: str, X: Tensor, params: Params) -> Tensor:
    """What the experts here make of their slots (E, slots, h)."""
    hidden = X @ params[f"{name}.up.weight"] + params[f"{name}.up.bias"][:, None]
    return gelu(hidden) @ params[f"{name}.down.weight"] + params[f"{name}.down.bias"][:, None]


@jax.jit
def combine(gates: Tensor, routes: Tensor, Y: Tensor) -> Tensor:
    """The sum of what experts have in the slots of each token, times its gates."""
    return jnp.einsum("nsec,ech->nsh", gates[..., None] * routes, Y)


@jax.jit
def combine_backward(routes: Tensor, Y: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the gates; those of all else are `dispatch` and `combine` themselves."""
    return (routes * jnp.einsum("nsh,ech->nsec", grad, Y)).sum(-1)


@jax.jit
def balance(probabilities: Tensor, load: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The auxiliary loss (Fedus et al., 2021), and its gradient by each token's probabilities.

    Of the probabilities it is a linear function: the load, of the minibatch, has no gradient.
    """
    grad = scale * load
    return (probabilities * grad).sum(), grad
