"""A mixture of experts from scratch, in MXNet: of each token, a router chooses some.

A hidden state is (n, s, h), probabilities and choices (n, s, E). What an expert takes is in slots,
the routes (n, s, E, slots) are 1 where a token is. Of the experts, a device may have some.
"""

from collections.abc import Mapping
from typing import TypeAlias

from mxnet import np, npx

from frameworks.mxnet.gpt import enter, gelu, layer, loss
from frameworks.mxnet.primitives import sums_of_empty_batches, with_empty_batches

__all__ = ["enter", "layer", "loss"]

Tensor: TypeAlias = np.ndarray
Params = Mapping[str, Tensor]


@with_empty_batches
def probabilities(name: str, X: Tensor, params: Params) -> Tensor:
    """The router's probabilities of all experts, from each token's state after the norm."""
    return npx.softmax(np.dot(X, params[f"{name}.router.weight"]))


@with_empty_batches
def choices(k: int, probabilities: Tensor) -> Tensor:
    """1 at the `k` most probable experts of each token, else 0."""
    return npx.topk(probabilities, k=k, ret_typ="mask", dtype=probabilities.dtype)


@sums_of_empty_batches
def load(chosen: Tensor) -> Tensor:
    """How many tokens chose each expert (E,)."""
    return chosen.sum((0, 1))


@with_empty_batches
def routes(slots: int, chosen: Tensor) -> Tensor:
    """The slot of each token at its experts, in order; if all are taken, an expert drops it."""
    tokens = chosen.reshape(-1, chosen.shape[-1])
    places = (tokens.cumsum(0) * tokens - 1).reshape(chosen.shape)  # -1 where it is not chosen
    numbers = np.arange(slots, dtype=chosen.dtype, ctx=chosen.ctx)
    return (places[..., None] == numbers).astype(chosen.dtype)


@sums_of_empty_batches
def dispatch(gates: Tensor, routes: Tensor, X: Tensor) -> Tensor:
    """Tokens, times their gates (n, s, E), in the slots of experts (E, slots, h); else zeros."""
    # Not by `einsum`, which is many times as slow.
    return np.tensordot(gates[..., None] * routes, X, ([0, 1], [0, 1]))


def experts(name: str, X: Tensor, params: Params) -> Tensor:
    """What the experts here make of their slots (E, slots, h)."""
    hidden = np.matmul(X, params[f"{name}.up.weight"]) + params[f"{name}.up.bias"][:, None]
    return (
        np.matmul(gelu(hidden), params[f"{name}.down.weight"])
        + params[f"{name}.down.bias"][:, None]
    )


@with_empty_batches
def combine(gates: Tensor, routes: Tensor, Y: Tensor) -> Tensor:
    """The sum of what experts have in the slots of each token, times its gates."""
    return np.tensordot(gates[..., None] * routes, Y, 2)


@with_empty_batches
def combine_backward(routes: Tensor, Y: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the gates; those of all else are `dispatch` and `combine` themselves."""
    return (routes * np.tensordot(grad, Y, ([2], [2]))).sum(-1)


@sums_of_empty_batches
def balance(probabilities: Tensor, load: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The auxiliary loss (Fedus et al., 2021), and its gradient by each token's probabilities.

    Of the probabilities it is a linear function: the load, of the minibatch, has no gradient.
    """
    grad = scale * load
    return (probabilities * grad).sum(), grad
