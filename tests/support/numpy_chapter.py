"""The scratch chapter in NumPy, so that the harness can be tested without a framework.

Versions of it each make a mistake that people do make.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import oracle
from communicators import ALONE
from named_devices import NamedDevices

from common.base.arrays import Array, Weights
from common.chapters.spec import Options
from common.parallel.replicas import same_everywhere
from common.parallel.shards import shard_bounds


class NumpyChapter(NamedDevices):
    """Satisfies `common.backends.interface.Chapter`; its devices are names."""

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[str], options: Options
    ) -> list[Weights]:
        return [{name: values.copy() for name, values in weights.items()} for _ in devices]

    def scale(self, shard: int, batch: int) -> float:
        """What a shard's mean gradient counts in the gradient of the whole minibatch."""
        return shard / batch

    def bounds(self, examples: int, devices: int) -> list[tuple[int, int]]:
        return shard_bounds(examples, devices)

    def loss_and_gradients(
        self, X: Array, y: Array, replicas: list[Weights], devices: Sequence[str]
    ) -> tuple[float, Weights]:
        loss, total = 0.0, {name: np.zeros_like(values) for name, values in replicas[0].items()}
        for (a, b), weights in zip(self.bounds(len(X), len(devices)), replicas, strict=True):
            if a == b:
                continue
            part, gradients, _ = oracle.loss_and_gradients("scratch", X[a:b], y[a:b], weights)
            loss += part * (b - a) / len(X)
            for name, values in gradients.items():
                total[name] += values * self.scale(b - a, len(X))
        return loss, total

    def train_batch(
        self, X: Array, y: Array, replicas: list[Weights], devices: Any, lr: float, options: Any
    ) -> float:
        loss, gradients = self.loss_and_gradients(X, y, replicas, devices)
        for index, weights in enumerate(replicas):
            self.sgd(index, weights, gradients, lr)
        return loss

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        for name, values in weights.items():
            values -= lr * gradients[name]

    def gradients(
        self, X: Array, y: Array, replicas: list[Weights], devices: Any, options: Any
    ) -> Weights:
        return self.loss_and_gradients(X, y, replicas, devices)[1]

    def predict(self, X: Array, replicas: list[Weights], devices: Sequence[str]) -> Array:
        return oracle.logits("scratch", X, replicas[0])

    def export(self, replicas: list[Weights]) -> Weights:
        return same_everywhere(replicas, ALONE)

    def save(self, replicas: list[Weights]) -> Weights:
        return self.export(replicas)

    def restore(
        self, saved: Mapping[str, Array], replicas: list[Weights], devices: Sequence[str]
    ) -> None:
        for replica in replicas:
            replica.update({name: values.copy() for name, values in saved.items()})

    def synchronize(self, replicas: list[Weights]) -> None:
        """There is nothing to wait for."""


class SumInsteadOfMean(NumpyChapter):
    def scale(self, shard: int, batch: int) -> float:
        return float(shard)


class SharedMemory(NumpyChapter):
    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[str], options: Options
    ) -> list[Weights]:
        return super().replicate(weights, devices, options)[:1] * len(devices)


class StaleReplica(NumpyChapter):
    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        if device != 1:
            super().sgd(device, weights, gradients, lr)


class UnnoticedStaleReplica(StaleReplica):
    def export(self, replicas: list[Weights]) -> Weights:
        return replicas[0]


class MeanOfMeans(NumpyChapter):
    """Every shard counts the same, even where one is larger."""

    def scale(self, shard: int, batch: int) -> float:
        return 1 / round(batch / shard)


class DroppedExample(NumpyChapter):
    def bounds(self, examples: int, devices: int) -> list[tuple[int, int]]:
        size = examples // devices
        return [(index * size, (index + 1) * size) for index in range(devices)]


class WrongFlattenOrder(NumpyChapter):
    """Flattens in row, column, channel order, as channels-last code does."""

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[str], options: Options
    ) -> list[Weights]:
        swapped = dict(weights)
        fc1 = weights["fc1.weight"].reshape(4, 4, 50, 128)
        swapped["fc1.weight"] = fc1.transpose(2, 0, 1, 3).reshape(800, 128)
        return super().replicate(swapped, devices, options)


class NotANumber(NumpyChapter):
    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        super().sgd(device, weights, gradients, lr)
        weights["conv1.bias"][:] = np.nan
