"""A small transformer from scratch, in JAX: its layers, as strategies split them.

Tokens `X` and labels `y` are (n, s), a hidden state (n, s, h), logits (n, s, words). Of the weights
that are cut, a device may have a part: some heads, some columns, some words.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import jax
from jax import Array as Tensor, numpy as jnp

from common.models.nets import LAYER_NORM_EPSILON
from frameworks.jax.attention import attend_part, merge, part_backward

__all__ = ["attend_part", "merge", "part_backward"]

Params = Mapping[str, Tensor]


@partial(jax.jit, static_argnums=0)
def layer(name: str, X: Tensor, params: Params) -> Tensor:
    """The output of a layer for `X`. A block's attention and MLP add theirs to their input."""
    if name == "embed":
        embedded: Tensor = finish(name, product((name,), X, params), params)
        return embedded
    Y: Tensor = product((name,), enter(name, X, params), params)
    return Y if name == "head" else X + finish(name, Y, params)


@partial(jax.jit, static_argnums=0)
def enter(name: str, X: Tensor, params: Params) -> Tensor:
    """Each token's state with mean 0 and variance 1, times a weight, plus a bias."""
    centred = X - X.mean(-1, keepdims=True)
    normal = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + LAYER_NORM_EPSILON)
    return normal * params[f"{name}.norm.weight"] + params[f"{name}.norm.bias"]


@partial(jax.jit, static_argnums=0)
def product(layers: Sequence[str], X: Tensor, params: Params) -> Tensor:
    """What these parts of a layer's weights add to its output."""
    (name,) = layers
    if name == "embed":
        return look_up(X, params["embed.weight"])
    if name == "head":
        return X @ params["head.weight"]
    if name.endswith("mlp"):
        hidden = gelu(X @ params[f"{name}.up.weight"] + params[f"{name}.up.bias"])
        return hidden @ params[f"{name}.down.weight"]
    heads = attend(*jnp.split(project(name, X, params), 3, -1))
    united: Tensor = unite(name, heads, params)
    return united


@partial(jax.jit, static_argnums=0)
def project(name: str, X: Tensor, params: Params) -> Tensor:
    """Query, key and value of each head, side by side (n, a, s, 3d)."""
    qkv = jnp.einsum("nsh,had->nasd", X, params[f"{name}.qkv.weight"])
    return qkv + params[f"{name}.qkv.bias"][:, None]


@partial(jax.jit, static_argnums=0)
def unite(name: str, heads: Tensor, params: Params) -> Tensor:
    """What these heads (n, a, s, d) add to the output."""
    return jnp.einsum("nasd,adh->nsh", heads, params[f"{name}.proj.weight"])


@partial(jax.jit, static_argnums=0)
def finish(name: str, Y: Tensor, params: Params) -> Tensor:
    """What follows the sum over parts: a bias, or each token's position."""
    if name == "embed":
        return Y + params["embed.position"]
    return Y + params[f"{name}.{'down' if name.endswith('mlp') else 'proj'}.bias"]


def look_up(X: Tensor, weight: Tensor) -> Tensor:
    """The rows of tokens (n, s); zeros for those that are not among the words here."""
    here = (len(weight) > X)[..., None]
    return jnp.where(here, weight[X.clip(max=len(weight) - 1)], 0)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of heads (n, a, s, d): each token sees itself and those before it."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    later = jnp.triu(jnp.ones(scores.shape[-2:], dtype=bool), 1)
    return jax.nn.softmax(jnp.where(later, -math.inf, scores)) @ v


def gelu(X: Tensor) -> Tensor:
    """GELU by its approximation with tanh (Hendrycks and Gimpel, 2016), as in GPT-2."""
    return X * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))) / 2


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n, s) of each label, from its logits; 0 where there is none, -1."""
    most = largest(y_hat)
    sums, label = exponentials_and_label(y_hat, y, most)
    return jnp.where(y < 0, 0, jnp.log(sums) + most - label)


@jax.jit
def largest(logits: Tensor) -> Tensor:
    """Each token's largest logit (n, s)."""
    return jax.lax.stop_gradient(logits).max(-1)


@jax.jit
def exponentials_and_label(logits: Tensor, y: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """Of the words here, the sum of exponentials, and the label's logit, 0 if it is not here."""
    label = (logits * one_hot(y, logits)).sum(-1)
    return jnp.exp(logits - most[..., None]).sum(-1), label


@jax.jit
def words_loss_and_grad(
    logits: Tensor, y: Tensor, most: Tensor, sums: Tensor, label: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The mean loss over `count` labels of all, and its gradient by the logits of words here."""
    counted = (y >= 0).astype(logits.dtype) / count
    probabilities = jnp.exp(logits - most[..., None]) / sums[..., None]
    grad = (probabilities - one_hot(y, logits)) * counted[..., None]
    return ((jnp.log(sums) + most - label) * counted).sum(), grad


def one_hot(y: Tensor, logits: Tensor) -> Tensor:
    """1 at the labels among the words here, else 0, in the shape of the logits."""
    words = jnp.arange(logits.shape[-1])
    return (y[..., None] == words).astype(logits.dtype)
