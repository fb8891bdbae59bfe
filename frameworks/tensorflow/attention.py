"""Attention to some of the tokens, as context parallelism puts it together, in TensorFlow.

Queries `q` are (n, a, T, d) for some tokens, keys and values `kv` (n, a, S, 2d) for others; `mask`
(T, S) is added to their scores: it hides keys of later tokens.
"""

import math

import tensorflow as tf
from tensorflow import Tensor


def scores(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """How well each query and key fit (n, a, T, S)."""
    return tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1]) + mask


def attend_part(q: Tensor, kv: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of these alone, and the logarithm of its sum of exponentials (n, a, T, 1)."""
    k, v = tf.split(kv, 2, -1)
    fit = scores(q, k, mask)
    most = tf.reduce_max(fit, -1, keepdims=True)
    exponentials = tf.exp(fit - most)
    sums = tf.reduce_sum(exponentials, -1, keepdims=True)
    return exponentials @ v / sums, tf.math.log(sums) + most


def merge(Y: Tensor, log_sums: Tensor, more: Tensor, more_sums: Tensor) -> tuple[Tensor, Tensor]:
    """The attention of two parts together: each weighs as its sum of exponentials."""
    most = tf.maximum(log_sums, more_sums)
    total = tf.math.log(tf.exp(log_sums - most) + tf.exp(more_sums - most)) + most
    return tf.exp(log_sums - total) * Y + tf.exp(more_sums - total) * more, total


def part_backward(
    q: Tensor, kv: Tensor, Y: Tensor, log_sums: Tensor, grad: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `q` and `kv`, from the output of all parts, and its gradient."""
    k, v = tf.split(kv, 2, -1)
    weights = tf.exp(scores(q, k, mask) - log_sums)
    of_weights = tf.matmul(grad, v, transpose_b=True) - tf.reduce_sum(grad * Y, -1, keepdims=True)
    of_scores = weights * of_weights / math.sqrt(q.shape[-1])
    of_k, of_v = (
        tf.matmul(each, other, transpose_a=True)
        for each, other in ((of_scores, q), (weights, grad))
    )
    return of_scores @ k, tf.concat([of_k, of_v], -1)
