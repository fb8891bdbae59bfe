"""Attention to some of the tokens, as context parallelism puts it together, in MXNet.

Queries `q` are (n, a, T, d) for some tokens, keys and values `kv` (n, a, S, 2d) for others; `mask`
(T, S) is added to their scores: it hides keys of later tokens.
"""

import math
from typing import TypeAlias

from mxnet import np

from frameworks.mxnet.primitives import with_empty_batches

Tensor: TypeAlias = np.ndarray


def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """How well each query and key fit (n, a, T, S)."""
    return np.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1]) + mask


@with_empty_batches
def attend_part(q: Tensor, kv: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of these alone, and the logarithm of its sum of exponentials (n, a, T, 1)."""
    k, v = np.split(kv, 2, -1)
    fit = scores(q, k, mask)
    most = fit.max(-1, keepdims=True)
    exponentials = np.exp(fit - most)
    sums = exponentials.sum(-1, keepdims=True)
    return np.matmul(exponentials, v) / sums, np.log(sums) + most


@with_empty_batches
def merge(Y: Tensor, log_sums: Tensor, more: Tensor, more_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of two parts together: each weighs as its sum of exponentials."""
    most = np.maximum(log_sums, more_sums)
    total = np.log(np.exp(log_sums - most) + np.exp(more_sums - most)) + most
    return np.exp(log_sums - total) * Y + np.exp(more_sums - total) * more, total


@with_empty_batches
def part_backward(
    q: Tensor, kv: Tensor, Y: Tensor, log_sums: Tensor, grad: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `q` and `kv`, from the output of all parts, and its gradient."""
    k, v = np.split(kv, 2, -1)
    weights = np.exp(scores(q, k, mask) - log_sums)
    of_weights = np.matmul(grad, v.swapaxes(-1, -2)) - (grad * Y).sum(-1, keepdims=True)
    of_scores = weights * of_weights / math.sqrt(q.shape[-1])
    of_k = np.matmul(of_scores.swapaxes(-1, -2), q)
    of_v = np.matmul(weights.swapaxes(-1, -2), grad)
    return np.matmul(of_scores, k), np.concatenate([of_k, of_v], -1)
