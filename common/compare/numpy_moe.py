"""The transformer with mixtures of experts in NumPy, forward and backward: expert by expert."""

import math
from collections.abc import Mapping

import numpy as np

from common.base.arrays import Array
from common.compare.numpy_gpt import GPT, softmax, through_softmax
from common.compare.numpy_pass import Bounds


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
