"""A mixture of experts from scratch, in MXNet: of each token, a router chooses some.

A hidden state is (n, s, h), probabilities and choices (n, s, E). What an expert takes is in slots,
the routes (n, s, E, slots) are 1 where a token is. Of the experts, a device may have some.
"""

from collections.abc import Mapping
from typing import TypeAlias

from mxnet import np, npx

from frameworks.mxnet.gpt import enter, gelu, layer, loss
from frameworks.mxnet.primitives import sums_of_empty_batches, with_empty_batches

__all__ = ["layer", "loss"]

Tensor: TypeAlias = np.ndarray
Params = Mapping[str, Tensor]


@with_empty_batches
def probabilities(name: str, X: Tensor, params: Params) -> Tensor:
    """The router's probabilities of all experts, for each token."""
    X = enter(name, X, params)
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
def dispatch(name: str, X: Tensor, params: Params) -> Tensor:
    """Tokens in the slots of their experts (E, slots, h); zeros where a slot is empty."""
    # Not by `einsum`, which is many times as slow.
    return np.tensordot(params["routes"], enter(name, X, params), ([0, 1], [0, 1]))


def experts(name: str, X: Tensor, params: Params) -> Tensor:
    """What the experts here make of their slots (E, slots, h)."""
    hidden = np.matmul(X, params[f"{name}.up.weight"]) + params[f"{name}.up.bias"][:, None]
    return (
        np.matmul(gelu(hidden), params[f"{name}.down.weight"])
        + params[f"{name}.down.bias"][:, None]
    )


@with_empty_batches
def combine(probabilities: Tensor, params: Params) -> Tensor:
    """The sum of what a token's experts made of it, times its probabilities of them."""
    gates = probabilities[..., None] * params["routes"]
    return np.tensordot(gates, params["outputs"], 2)


@sums_of_empty_batches
def balance_loss_and_grad(
    probabilities: Tensor, load: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """The auxiliary loss (Fedus et al., 2021), and its gradient by each token's probabilities.

    It is a constant times the sum over experts of mean probability times load, that of all tokens
    of the minibatch, which has no gradient. So each probability's gradient is `scale` times a load.
    """
    grad = scale * load
    return (probabilities * grad).sum(), grad
