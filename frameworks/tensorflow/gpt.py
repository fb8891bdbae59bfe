"""A small transformer from scratch, in TensorFlow: its layers, as strategies split them.

Tokens `X` and labels `y` are (n, s), a hidden state (n, s, h), logits (n, s, words). Of the weights
that are cut, a device may have a part: some heads, some columns, some words.
"""

import math
from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow import Tensor

from common.models.nets import LAYER_NORM_EPSILON
from frameworks.tensorflow.attention import attend_part, merge, part_backward

__all__ = ["attend_part", "merge", "part_backward"]

Params = Mapping[str, Tensor]


def layer(name: str, X: Tensor, params: Params) -> Tensor:
    """The output of a layer for `X`. A block's attention and MLP add theirs to their input."""
    if name == "embed":
        return finish(name, product([name], X, params), params)
    Y = product([name], enter(name, X, params), params)
    return Y if name == "head" else X + finish(name, Y, params)


def enter(name: str, X: Tensor, params: Params) -> Tensor:
    """Each token's state with mean 0 and variance 1, times a weight, plus a bias."""
    mean, var = tf.nn.moments(X, -1, keepdims=True)
    normal = (X - mean) / tf.sqrt(var + LAYER_NORM_EPSILON)
    return normal * params[f"{name}.norm.weight"] + params[f"{name}.norm.bias"]


def product(layers: Sequence[str], X: Tensor, params: Params) -> Tensor:
    """What these parts of a layer's weights add to its output."""
    (name,) = layers
    if name == "embed":
        return look_up(X, params["embed.weight"])
    if name == "head":
        return tf.tensordot(X, params["head.weight"], 1)
    if name.endswith("mlp"):
        hidden = gelu(tf.tensordot(X, params[f"{name}.up.weight"], 1) + params[f"{name}.up.bias"])
        return tf.tensordot(hidden, params[f"{name}.down.weight"], 1)
    heads = attend(*tf.split(project(name, X, params), 3, -1))
    return unite(name, heads, params)


def project(name: str, X: Tensor, params: Params) -> Tensor:
    """Query, key and value of each head, side by side (n, a, s, 3d)."""
    qkv = tf.einsum("nsh,had->nasd", X, params[f"{name}.qkv.weight"])
    return qkv + params[f"{name}.qkv.bias"][:, tf.newaxis]


def unite(name: str, heads: Tensor, params: Params) -> Tensor:
    """What these heads (n, a, s, d) add to the output."""
    return tf.einsum("nasd,adh->nsh", heads, params[f"{name}.proj.weight"])


def finish(name: str, Y: Tensor, params: Params) -> Tensor:
    """What follows the sum over parts: a bias, or each token's position."""
    if name == "embed":
        return Y + params["embed.position"]
    return Y + params[f"{name}.{'down' if name.endswith('mlp') else 'proj'}.bias"]


def look_up(X: Tensor, weight: Tensor) -> Tensor:
    """The rows of tokens (n, s); zeros for those that are not among the words here."""
    clamped = tf.minimum(X, weight.shape[0] - 1)
    here = (clamped == X)[..., tf.newaxis]
    return tf.where(here, tf.gather(weight, clamped), 0)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of heads (n, a, s, d): each token sees itself and those before it."""
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])
    places = tf.range(q.shape[-2])
    seen = places <= places[:, tf.newaxis]
    return tf.nn.softmax(tf.where(seen, scores, -math.inf)) @ v


def gelu(X: Tensor) -> Tensor:
    """GELU by its approximation with tanh (Hendrycks and Gimpel, 2016), as in GPT-2."""
    return X * (1 + tf.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))) / 2


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n, s) of each label, from its logits; 0 where there is none, -1."""
    most = largest(y_hat)
    sums, label = exponentials_and_label(y_hat, y, most)
    return tf.where(y >= 0, tf.math.log(sums) + most - label, 0)


def largest(logits: Tensor) -> Tensor:
    """Each token's largest logit (n, s)."""
    return tf.reduce_max(tf.stop_gradient(logits), -1)


def exponentials_and_label(logits: Tensor, y: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """Of the words here, the sum of exponentials, and the label's logit, 0 if it is not here."""
    label = tf.reduce_sum(logits * one_hot(y, logits), -1)
    return tf.reduce_sum(tf.exp(logits - most[..., tf.newaxis]), -1), label


def words_loss_and_grad(
    logits: Tensor, y: Tensor, most: Tensor, sums: Tensor, label: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The mean loss over `count` labels of all, and its gradient by the logits of words here."""
    counted = tf.cast(y >= 0, logits.dtype) / count
    probabilities = tf.exp(logits - most[..., tf.newaxis]) / sums[..., tf.newaxis]
    grad = (probabilities - one_hot(y, logits)) * counted[..., tf.newaxis]
    return tf.reduce_sum((tf.math.log(sums) + most - label) * counted), grad


def one_hot(y: Tensor, logits: Tensor) -> Tensor:
    """1 at the labels among the words here, else 0, in the shape of the logits."""
    return tf.one_hot(y, logits.shape[-1], dtype=logits.dtype)
