"""The transformer in NumPy, forward and backward; also with mixtures of experts, one by one."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.compare.numpy_pass import Bounds, Pass

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


class MoE(GPT):
    """Each of `shards` has its own slots at each expert; without any, no token is dropped.

    `auxiliary` is the part of the loss that is least where experts are chosen equally often.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        shards: Bounds = (),
        top_k: int = 2,
        capacity: float = 0.0,
        balance: float = 0.01,
    ) -> None:
        super().__init__(weights, shards)
        self.top_k, self.capacity, self.balance = top_k, capacity, balance

    def feed_forward(self, hidden: Array, name: str) -> Array:
        if f"{name}.moe.router.weight" in self.weights:
            return self.sublayer(hidden, f"{name}.moe", self.mixture)
        return super().feed_forward(hidden, name)

    def mixture(self, X: Array, name: str) -> Array:
        """Experts' outputs, each times the router's probability; tokens X are (n, s, h)."""
        router = self.weights[f"{name}.router.weight"]
        p = softmax(X @ router)
        tokens, count = X.shape[0] * X.shape[1], p.shape[-1]
        chosen = p >= np.sort(p, axis=-1)[..., -self.top_k :][..., :1]
        shares = chosen.sum(axis=(0, 1)) / (self.top_k * tokens)
        self.auxiliary += self.balance * count * float((shares * p.mean(axis=(0, 1))).sum())
        kept, out = self.kept(chosen), np.zeros_like(X)
        kinds = [f"{name}.{kind}" for kind in ("up.weight", "up.bias", "down.weight", "down.bias")]
        experts: list[tuple[tuple[Array, ...], Array, GPT]] = []
        for number in range(count):
            here = np.nonzero(kept[..., number])
            expert = GPT({kind: self.weights[kind][number] for kind in kinds})
            made = expert.mlp(X[here], name)
            out[here] += p[(*here, number)][:, None] * made
            experts.append((here, made, expert))

        def backward(d: Array) -> Array:
            d_p, d_in = np.zeros_like(p) + self.balance * count * shares / tokens, np.zeros_like(X)
            for number, (here, made, expert) in enumerate(experts):
                d_p[(*here, number)] += (d[here] * made).sum(axis=-1)
                d_in[here] += expert.backward(p[(*here, number)][:, None] * d[here])
            for kind in kinds:
                self.gradients[kind] = np.stack([x.gradients[kind] for _, _, x in experts])
            d_scores = through_softmax(p, d_p)
            self.gradients[f"{name}.router.weight"] = np.einsum("nsh,nse->he", X, d_scores)
            d_in += d_scores @ router.T
            return d_in

        self.tape.append(backward)
        return out

    def kept(self, chosen: Array) -> Array:
        """The choices (n, s, E) that find a slot: an expert's first ones of each shard."""
        kept = chosen.copy()
        for a, b in self.shards if self.capacity else ():
            tokens, count = chosen[a:b, :, 0].size, chosen.shape[-1]
            slots = math.ceil(self.capacity * self.top_k * tokens / count)
            order = chosen[a:b].reshape(tokens, count).cumsum(axis=0)
            kept[a:b] &= (order <= slots).reshape(chosen[a:b].shape)
        return kept


def softmax(scores: Array) -> Array:
    """The probabilities along the last axis."""
    p: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p


def through_softmax(p: Array, d: Array) -> Array:
    """The gradient of the scores of probabilities `p`, whose gradient is `d`."""
    d_scores: Array = p * (d - (d * p).sum(axis=-1, keepdims=True))
    return d_scores
