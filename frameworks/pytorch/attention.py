"""Attention to some of the tokens, as context parallelism puts it together, in PyTorch.

Queries `q` are (n, a, T, d) for some tokens, keys and values `kv` (n, a, S, 2d) for others; `mask`
(T, S) is added to their scores: it hides keys of later tokens.
"""

import math

import torch
from torch import Tensor


def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """How well each query and key fit (n, a, T, S)."""
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask


def attend_part(q: Tensor, kv: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of these alone, and the logarithm of its sum of exponentials (n, a, T, 1)."""
    k, v = kv.chunk(2, -1)
    fit = scores(q, k, mask)
    most = fit.amax(-1, keepdim=True)
    exponentials = (fit - most).exp()
    sums = exponentials.sum(-1, keepdim=True)
    return exponentials @ v / sums, sums.log() + most


def merge(Y: Tensor, log_sums: Tensor, more: Tensor, more_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of two parts together: each weighs as its sum of exponentials."""
    most = torch.maximum(log_sums, more_sums)
    total = ((log_sums - most).exp() + (more_sums - most).exp()).log() + most
    return (log_sums - total).exp() * Y + (more_sums - total).exp() * more, total


def part_backward(
    q: Tensor, kv: Tensor, Y: Tensor, log_sums: Tensor, grad: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `q` and `kv`, from the output of all parts, and its gradient."""
    k, v = kv.chunk(2, -1)
    weights = (scores(q, k, mask) - log_sums).exp()
    of_weights = grad @ v.transpose(-1, -2) - (grad * Y).sum(-1, keepdim=True)
    of_scores = weights * of_weights / math.sqrt(q.shape[-1])
    of_k, of_v = of_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ grad
    return of_scores @ k, torch.cat([of_k, of_v], -1)
