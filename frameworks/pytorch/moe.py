"""A mixture of experts from scratch, in PyTorch: of each token, a router chooses some.

A hidden state is (n, s, h), probabilities and choices (n, s, E). What an expert takes is in slots,
the routes (n, s, E, slots) are 1 where a token is. Of the experts, a device may have some.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from frameworks.pytorch.gpt import enter, gelu, layer, loss

__all__ = ["enter", "layer", "loss"]

Params = Mapping[str, Tensor]


def probabilities(name: str, X: Tensor, params: Params) -> Tensor:
    """The router's probabilities of all experts, from each token's state after the norm."""
    return torch.softmax(X @ params[f"{name}.router.weight"], -1)


def choices(k: int, probabilities: Tensor) -> Tensor:
    """1 at the `k` most probable experts of each token, else 0."""
    least = probabilities.topk(k).values[..., -1:]
    return (probabilities >= least).to(probabilities.dtype)


def load(chosen: Tensor) -> Tensor:
    """How many tokens chose each expert (E,)."""
    return torch.sum(chosen, (0, 1))


def routes(slots: int, chosen: Tensor) -> Tensor:
    """The slot of each token at its experts, in order; if all are taken, an expert drops it."""
    tokens = chosen.flatten(0, 1)
    places = (tokens.cumsum(0) * tokens - 1).reshape(chosen.shape)  # -1 where it is not chosen
    numbers = torch.arange(slots, device=chosen.device)
    return (places[..., None] == numbers).to(chosen.dtype)


def dispatch(gates: Tensor, routes: Tensor, X: Tensor) -> Tensor:
    """Tokens, times their gates (n, s, E), in the slots of experts (E, slots, h); else zeros."""
    return torch.einsum("nsec,nsh->ech", gates[..., None] * routes, X)


def experts(name: str, X: Tensor, params: Params) -> Tensor:
    """What the experts here make of their slots (E, slots, h)."""
    hidden = X @ params[f"{name}.up.weight"] + params[f"{name}.up.bias"][:, None]
    return gelu(hidden) @ params[f"{name}.down.weight"] + params[f"{name}.down.bias"][:, None]


def combine(gates: Tensor, routes: Tensor, Y: Tensor) -> Tensor:
    """The sum of what experts have in the slots of each token, times its gates."""
    return torch.einsum("nsec,ech->nsh", gates[..., None] * routes, Y)


def combine_backward(routes: Tensor, Y: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the gates; those of all else are `dispatch` and `combine` themselves."""
    return (routes * torch.einsum("nsh,ech->nsec", grad, Y)).sum(-1)


def balance(probabilities: Tensor, load: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The auxiliary loss (Fedus et al., 2021), and its gradient by each token's probabilities.

    Of the probabilities it is a linear function: the load, of the minibatch, has no gradient.
    """
    grad = scale * load
    return (probabilities * grad).sum(), grad
