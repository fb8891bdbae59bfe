"""The transformer in NumPy, forward and backward."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.compare.numpy_pass import Pass

EPSILON: Final = 2.0**-17
"""Of layer normalization; runs take theirs from elsewhere."""


class GPT(Pass):
    """Tokens (n, s) to logits (n, s, words); a hidden state is (n, s, h)."""

    def forward(self, X: Array) -> Array:
        hidden = self.embed(X.astype(np.int64))
        blocks = [k for k in self.weights if k.endswith(".qkv.bias")]
        for name in (k.partition(".")[0] for k in blocks):
            hidden = self.sublayer(hidden, f"{name}.attention", self.attention)
            hidden = self.feed_forward(hidden, name)
        return self.dense(self.layer_norm(hidden, "head"), "head")

    def sublayer(self, X: Array, name: str, layer: Callable[[Array, str], Array]) -> Array:
        return self.residual(X, lambda X: layer(self.layer_norm(X, name), name))

    def feed_forward(self, hidden: Array, name: str) -> Array:
        return self.sublayer(hidden, f"{name}.mlp", self.mlp)

    def embed(self, X: Array) -> Array:
        weight = self.weights["embed.weight"]

        def backward(d: Array) -> Array:
            total = np.zeros_like(weight)
            np.add.at(total, X, d)
            self.gradients["embed.weight"] = total
            self.gradients["embed.position"] = d.sum(axis=0)
            return d

        self.tape.append(backward)
        out: Array = weight[X] + self.weights["embed.position"]
        return out

    def layer_norm(self, X: Array, name: str) -> Array:
        weight = self.weights[f"{name}.norm.weight"]
        centred = X - X.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        normal = centred / deviation

        def backward(d: Array) -> Array:
            self.gradients[f"{name}.norm.weight"] = (d * normal).sum(axis=(0, 1))
            self.gradients[f"{name}.norm.bias"] = d.sum(axis=(0, 1))
            d = d * weight
            along = normal * (d * normal).mean(axis=-1, keepdims=True)
            d_in: Array = (d - d.mean(axis=-1, keepdims=True) - along) / deviation
            return d_in

        self.tape.append(backward)
        out: Array = normal * weight + self.weights[f"{name}.norm.bias"]
        return out

    def attention(self, X: Array, name: str) -> Array:
        """Heads are (n, heads, s, size): each token sees itself and those before it."""
        weight, bias = (self.weights[f"{name}.qkv.{x}"] for x in ("weight", "bias"))
        proj = self.weights[f"{name}.proj.weight"]
        q, k, v = np.split(np.einsum("nsh,had->nasd", X, weight) + bias[:, None], 3, axis=-1)
        root = math.sqrt(q.shape[-1])
        scores = q @ k.swapaxes(2, 3) / root
        scores = np.where(np.tri(X.shape[1], dtype=bool), scores, -np.inf)
        p = softmax(scores)
        heads = p @ v

        def backward(d: Array) -> Array:
            self.gradients[f"{name}.proj.weight"] = np.einsum("nasd,nsh->adh", heads, d)
            self.gradients[f"{name}.proj.bias"] = d.sum(axis=(0, 1))
            d_heads = np.einsum("nsh,adh->nasd", d, proj)
            d_p = d_heads @ v.swapaxes(2, 3)
            d_scores = through_softmax(p, d_p) / root
            parts = d_scores @ k, d_scores.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ d_heads
            d_qkv = np.concatenate(parts, axis=-1)
            self.gradients[f"{name}.qkv.weight"] = np.einsum("nsh,nasd->had", X, d_qkv)
            self.gradients[f"{name}.qkv.bias"] = d_qkv.sum(axis=(0, 2))
            d_in: Array = np.einsum("nasd,had->nsh", d_qkv, weight)
            return d_in

        self.tape.append(backward)
        out: Array = np.einsum("nasd,adh->nsh", heads, proj) + self.weights[f"{name}.proj.bias"]
        return out

    def mlp(self, X: Array, name: str) -> Array:
        return self.dense(self.gelu(self.dense(X, f"{name}.up")), f"{name}.down")

    def gelu(self, X: Array) -> Array:
        """By the approximation with tanh, as GPT-2 has it."""
        factor = math.sqrt(2 / math.pi)
        t = np.tanh(factor * (X + 0.044715 * X**3))

        def backward(d: Array) -> Array:
            inner = factor * (1 + 3 * 0.044715 * X**2)
            d_in: Array = d * (1 + t + X * (1 - t**2) * inner) / 2
            return d_in

        self.tape.append(backward)
        out: Array = X * (1 + t) / 2
        return out


def softmax(scores: Array) -> Array:
    """The probabilities along the last axis."""
    p: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p


def through_softmax(p: Array, d: Array) -> Array:
    """The gradient of the scores of probabilities `p`, whose gradient is `d`."""
    d_scores: Array = p * (d - (d * p).sum(axis=-1, keepdims=True))
    return d_scores
