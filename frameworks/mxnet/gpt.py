"""A small transformer from scratch, in MXNet: its layers, as strategies split them.

Tokens `X` and labels `y` are (n, s), a hidden state (n, s, h), logits (n, s, words). Of the weights
that are cut, a device may have a part: some heads, some columns, some words.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mxnet import np, npx

from common.models.nets import LAYER_NORM_EPSILON
from frameworks.mxnet.attention import attend_part, merge, part_backward
from frameworks.mxnet.primitives import with_empty_batches

__all__ = ["attend_part", "merge", "part_backward"]

Tensor: TypeAlias = np.ndarray
Params = Mapping[str, Tensor]


def layer(name: str, X: Tensor, params: Params) -> Tensor:
    """The output of a layer for `X`. A block's attention and MLP add theirs to their input."""
    if name == "embed":
        return finish(name, product([name], X, params), params)
    Y = product([name], enter(name, X, params), params)
    return Y if name == "head" else X + finish(name, Y, params)


@with_empty_batches
def enter(name: str, X: Tensor, params: Params) -> Tensor:
    """Each token's state with mean 0 and variance 1, times a weight, plus a bias."""
    centred = X - X.mean(-1, keepdims=True)
    var = np.square(centred).mean(-1, keepdims=True)  # the gradient of `var` is 0
    normal = centred / np.sqrt(var + LAYER_NORM_EPSILON)
    return normal * params[f"{name}.norm.weight"] + params[f"{name}.norm.bias"]


@with_empty_batches
def product(layers: Sequence[str], X: Tensor, params: Params) -> Tensor:
    """What these parts of a layer's weights add to its output."""
    (name,) = layers
    if name == "embed":
        return look_up(X, params["embed.weight"])
    if name == "head":
        return np.dot(X, params["head.weight"])
    if name.endswith("mlp"):
        hidden = gelu(np.dot(X, params[f"{name}.up.weight"]) + params[f"{name}.up.bias"])
        return np.dot(hidden, params[f"{name}.down.weight"])
    heads = attend(*np.split(project(name, X, params), 3, -1))
    return unite(name, heads, params)


@with_empty_batches
def project(name: str, X: Tensor, params: Params) -> Tensor:
    """Query, key and value of each head, side by side (n, a, s, 3d)."""
    # Not by `einsum`, which is many times as slow.
    qkv = np.tensordot(X, params[f"{name}.qkv.weight"], 1).swapaxes(1, 2)
    return qkv + params[f"{name}.qkv.bias"][:, None]


@with_empty_batches
def unite(name: str, heads: Tensor, params: Params) -> Tensor:
    """What these heads (n, a, s, d) add to the output."""
    return np.tensordot(heads.swapaxes(1, 2), params[f"{name}.proj.weight"], 2)


def finish(name: str, Y: Tensor, params: Params) -> Tensor:
    """What follows the sum over parts: a bias, or each token's position."""
    if name == "embed":
        return Y + params["embed.position"]
    return Y + params[f"{name}.{'down' if name.endswith('mlp') else 'proj'}.bias"]


def look_up(X: Tensor, weight: Tensor) -> Tensor:
    """The rows of tokens (n, s); zeros for those that are not among the words here."""
    rows = np.take(weight, X, axis=0, mode="clip")
    here = (len(weight) > X)[..., None]
    return np.where(here, rows, np.zeros_like(rows))  # with a number, its gradient is wrong


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of heads (n, a, s, d): each token sees itself and those before it."""
    scores = np.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[-2:], scores.dtype, ctx=scores.ctx))
    return np.matmul(npx.softmax(np.where(seen, scores, np.full_like(scores, -math.inf))), v)


def gelu(X: Tensor) -> Tensor:
    """GELU by its approximation with tanh (Hendrycks and Gimpel, 2016), as in GPT-2."""
    return X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X * X * X))) / 2


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n, s) of each label, from its logits; 0 where there is none, -1."""
    most = largest(y_hat)
    sums, label = exponentials_and_label(y_hat, y, most)
    return np.where(y < 0, np.zeros_like(sums), np.log(sums) + most - label)


def largest(logits: Tensor) -> Tensor:
    """Each token's largest logit (n, s)."""
    return logits.detach().max(-1)


@with_empty_batches
def exponentials_and_label(logits: Tensor, y: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """Of the words here, the sum of exponentials, and the label's logit, 0 if it is not here."""
    label = (logits * one_hot(y, logits)).sum(-1)
    return np.exp(logits - most[..., None]).sum(-1), label


def words_loss_and_grad(
    logits: Tensor, y: Tensor, most: Tensor, sums: Tensor, label: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The mean loss over `count` labels of all, and its gradient by the logits of words here."""
    counted = (y >= 0).astype(logits.dtype) / count
    probabilities = np.exp(logits - most[..., None]) / sums[..., None]
    grad = (probabilities - one_hot(y, logits)) * counted[..., None]
    return ((np.log(sums) + most - label) * counted).sum(), grad


def one_hot(y: Tensor, logits: Tensor) -> Tensor:
    """1 at the labels among the words here, else 0, in the shape of the logits."""
    words = np.arange(logits.shape[-1], dtype=y.dtype, ctx=y.ctx)
    return (y[..., None] == words).astype(logits.dtype)
