"""What a device of the concise chapter keeps of weights and gradients, in bytes."""

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from concise_steps import RATES, Trained, batches, start

from common.backends.devices import Process
from common.backends.loading import backend
from common.models.weights_file import save_weights

WIDTH = 16


class Held(Trained):
    """A worker: takes a step, and saves what the first device of its process keeps after it."""

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, "concise")
        devices = process.share_of(self.devices)
        replicas = chapter.replicate(start(self.dtype, WIDTH), devices, self.options())
        X, y = batches(self.dtype)[0]
        chapter.train_batch(X, y, replicas, devices, RATES[0], self.options())
        count = in_pytorch if self.framework == "pytorch" else in_jax
        weights, gradients = count(chapter, replicas, X, y)
        found = {"weights": np.array([weights]), "gradients": np.array([gradients])}
        save_weights(self.folder / f"{process.rank}.safetensors", found)


def in_pytorch(chapter: Any, replicas: Any, X: Any, y: Any) -> tuple[int, int]:
    """Bytes of the weights and of their gradients."""
    params = list(replicas.net.parameters())

    def size(tensors: Iterable[Any]) -> int:
        return sum(getattr(each, "to_local", lambda own=each: own)().nbytes for each in tensors)

    return size(params), size(each.grad for each in params)


def in_jax(chapter: Any, replicas: Any, X: Any, y: Any) -> tuple[int, int]:
    """Bytes of the weights and of their gradients."""
    jax: Any = importlib.import_module("jax")
    _, gradients, _ = chapter.listing.forward_backward(X, y, replicas, len(X))

    def size(state: Any) -> int:
        return sum(each.addressable_shards[0].data.nbytes for each in jax.tree.leaves(state))

    return size(replicas.params), size(gradients)
