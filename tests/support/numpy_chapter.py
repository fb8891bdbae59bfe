"""Chapters in NumPy, with which the harness is tested without a framework. Devices are names.

Subclasses have the usual mistakes.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, Self

import numpy as np

from common.backends.interface import ALONE, DeviceRequest, Devices, Process
from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.numpy_nets import ResNet18, Step
from common.models.nets import EPSILON, MOMENTUM
from common.parallel.replicas import same_everywhere, saved_of, saved_state
from common.parallel.shards import shard_bounds

PLACE: Final = "frameworks.chapters"
"""The module that gives the chapters of frameworks, which need not be installed."""


def standing_in(chapter: Any) -> Any:
    """A stand-in for that module, with this chapter under every name."""
    return SimpleNamespace(scratch=lambda framework: chapter, concise=lambda framework: chapter)


class NumpyChapter:
    """LeNet: satisfies `Chapter` and, as `trainer` returns it, `Trainer` of the same interface."""

    name = "scratch"
    options: Any
    shards: int
    replicas: list[Weights]

    def devices(self, process: Process, request: DeviceRequest) -> Devices[str]:
        names = [f"cpu:{index}" for index in range(request.count or 2)]
        return Devices("cpu", names)

    def launch(self, worker: Any, request: Any, options: Any) -> None:
        worker(ALONE)

    def trainer(self, weights: Mapping[str, Array], devices: Any, options: Any) -> Self:
        trainer = copy(self)
        trainer.options, trainer.shards = options, len(devices)
        trainer.replicas = trainer.replicate(weights)
        return trainer

    def replicate(self, weights: Mapping[str, Array]) -> list[Weights]:
        """A copy of the weights for each device."""
        return [copied(weights) for _ in range(self.shards)]

    def scale(self, shard: int, batch: int) -> float:
        """The weight of a shard's mean gradient in the gradient of the whole minibatch."""
        return shard / batch

    def bounds(self, examples: int) -> list[tuple[int, int]]:
        return shard_bounds(examples, self.shards)

    def step(self, X: Array, y: Array) -> Step:
        """The sum of the steps of all shards, each from its device's weights."""
        loss, total = 0.0, {name: np.zeros_like(v) for name, v in self.replicas[0].items()}
        for (a, b), weights in zip(self.bounds(len(X)), self.replicas, strict=True):
            if a < b:
                step = numpy_nets.step(self.name, X[a:b], y[a:b], weights, [(0, b - a)])
                loss += step.loss * (b - a) / len(X)
                for name, values in step.gradients.items():
                    total[name] += (values * self.scale(b - a, len(X))).astype(total[name].dtype)
        return Step(loss, loss, total, {}, {})

    def train_batch(self, X: Array, y: Array, lr: float) -> float:
        step = self.step(X, y)
        for device, weights in enumerate(self.replicas):
            weights.update(self.statistics(device, step))
            self.sgd(device, weights, step.gradients, lr)
        return step.loss

    def statistics(self, device: int, step: Step) -> Weights:
        return {}

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        for name, gradient in gradients.items():
            weights[name] -= lr * gradient

    def gradients(self, X: Array, y: Array) -> Weights:
        return self.step(X, y).gradients

    def predict(self, X: Array) -> Array:
        return numpy_nets.logits(self.name, X, self.replicas[0]).astype(X.dtype)

    def export(self) -> Weights:
        return same_everywhere(self.replicas)

    def bias(self) -> Array:
        return self.replicas[0]["fc.bias" if self.name == "concise" else "fc2.bias"].copy()

    def save(self) -> Weights:
        return self.export()

    def restore(self, saved: Mapping[str, Array]) -> None:
        for replica in self.replicas:
            replica.update(copied(saved))

    def synchronize(self, replicas: Any) -> None:
        """Does nothing: no work is queued."""


class NumpyConcise(NumpyChapter):
    """The first net stands for all replicas; shards are normalized as the options say."""

    name = "concise"

    def step(self, X: Array, y: Array) -> Step:
        per_device = self.options.batch_norm == "per-device"
        shards = shard_bounds(len(X), self.shards if per_device else 1)
        step = numpy_nets.step(self.name, X, y, self.replicas[0], shards)
        gradients, statistics = (rounded(v, X) for v in (step.gradients, step.statistics))
        return replace(step, gradients=gradients, statistics=statistics)

    def statistics(self, device: int, step: Step) -> Weights:
        """The running statistics of a device after a step."""
        if device == 0 or self.options.batch_norm == "sync":
            return step.statistics
        old = self.replicas[device]
        shards = {name: seen[device] for name, seen in step.seen.items() if device < len(seen)}
        new = {name: numpy_nets.moved(old[name], seen) for name, seen in shards.items()}
        return {name: values.astype(old[name].dtype) for name, values in new.items()}

    def activations(self, X: Array) -> Weights:
        return rounded(layers(X, self.replicas[0]), X)

    def export(self) -> Weights:
        return self.replicas[0]

    def save(self) -> Weights:
        return saved_state(self.replicas)

    def restore(self, saved: Mapping[str, Array]) -> None:
        for device, replica in enumerate(self.replicas):
            replica.update(copied(saved_of(saved, device)))


def copied(arrays: Mapping[str, Array]) -> Weights:
    """Arrays that share no memory with others."""
    return {name: values.copy() for name, values in arrays.items()}


def rounded(arrays: Weights, like: Array) -> Weights:
    """The same arrays in the dtype of another one."""
    return {name: values.astype(like.dtype) for name, values in arrays.items()}


class Layers(ResNet18):
    """A pass in evaluation mode that keeps the output of each layer."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        super().__init__(weights)
        self.outputs: Weights = {}

    def conv(self, X: Array, name: str, stride: int = 1, padding: int = 0) -> Array:
        self.outputs[name] = super().conv(X, name, stride, padding)
        return self.outputs[name]

    def norm(self, X: Array, name: str) -> Array:
        self.outputs[name] = super().norm(X, name)
        return self.outputs[name]


def layers(X: Array, weights: Mapping[str, Array]) -> Weights:
    """The output of each layer of ResNet-18 for a batch, by the layer's name, in float64."""
    run = Layers(numpy_nets.doubled(weights))
    logits = run.forward(X.astype(np.float64))
    return {**run.outputs, "fc": logits}


class SumInsteadOfMean(NumpyChapter):
    def scale(self, shard: int, batch: int) -> float:
        return float(shard)


class SharedMemory(NumpyChapter):
    def replicate(self, weights: Mapping[str, Array]) -> list[Weights]:
        return [copied(weights)] * self.shards


class StaleReplica(NumpyChapter):
    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        if device != 1:
            super().sgd(device, weights, gradients, lr)


class UnnoticedStaleReplica(StaleReplica):
    def export(self) -> Weights:
        return self.replicas[0]


class MeanOfMeans(NumpyChapter):
    """Weights all shards equally, even if one is larger."""

    def scale(self, shard: int, batch: int) -> float:
        return 1 / round(batch / shard)


class WrongFlattenOrder(NumpyChapter):
    """Flattens in row, column, channel order, as channels-last code does."""

    def replicate(self, weights: Mapping[str, Array]) -> list[Weights]:
        fc1 = weights["fc1.weight"].reshape(4, 4, 50, 128).transpose(2, 0, 1, 3)
        return super().replicate({**weights, "fc1.weight": fc1.reshape(800, 128)})


class WrongEpsilon(NumpyConcise):
    """Evaluates one of many layers with another framework's default epsilon."""

    def predict(self, X: Array) -> Array:
        return self.activations(X)["fc"]

    def activations(self, X: Array) -> Weights:
        weights, name = self.replicas[0], "stage3.block1.bn2.running_var"
        return rounded(layers(X, {**weights, name: weights[name] + 1e-3 - EPSILON}), X)


class WrongMomentum(NumpyConcise):
    """Takes the share of the old value for the share of the new one."""

    def step(self, X: Array, y: Array) -> Step:
        right = super().step(X, y)
        ratio = (1 - MOMENTUM) / MOMENTUM
        old = {name: self.replicas[0][name] for name in right.statistics}
        wrong = {k: old[k] + ratio * (v - old[k]) for k, v in right.statistics.items()}
        return replace(right, statistics=wrong)


class UnmovedStatistics(NumpyConcise):
    """Moves the running statistics of the first device only."""

    def statistics(self, device: int, step: Step) -> Weights:
        return super().statistics(device, step) if device == 0 else {}


class LocalStatistics(NumpyConcise):
    """Normalizes by the shard instead of the whole minibatch."""

    def trainer(self, weights: Mapping[str, Array], devices: Any, options: Any) -> Self:
        return super().trainer(weights, devices, replace(options, batch_norm="per-device"))


class Flips(NumpyConcise):
    """Decides a ReLU unit otherwise in every step."""

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        return flipped(self, super().step(X, y), X, y, "stage1.block1.bn1.bias")


def flipped(chapter: NumpyChapter, step: Step, X: Array, y: Array, bias: str) -> Step:
    """The step with the unit in doubt decided otherwise that changes a bias's gradient most."""
    doubt = numpy_nets.Doubt(chapter.name, X, y, chapter.replicas[0], [(0, len(X))])
    gains = (doubt.gain([unit]) for unit in doubt.units)
    most = max(gains, key=lambda gained: float(np.abs(gained[bias]).max()))
    gradients = {name: g + most[name].astype(g.dtype) for name, g in step.gradients.items()}
    return replace(step, gradients=gradients)


class OnGpus(NumpyChapter):
    """The same computation, on what it calls GPUs."""

    def devices(self, process: Process, request: DeviceRequest) -> Devices[str]:
        found = super().devices(process, request)
        return Devices("gpu", [name.replace("cpu", "cuda") for name in found.local])


class Momentum(NumpyChapter):
    """SGD with a momentum of 0.9, of one device."""

    name = "strategies"
    velocities: Weights

    def trainer(self, weights: Mapping[str, Array], devices: Any, options: Any) -> Self:
        trainer = super().trainer(weights, devices, options)
        trainer.velocities = {name: np.zeros_like(values) for name, values in weights.items()}
        return trainer

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        for name, grad in gradients.items():
            velocity = self.velocities[name] = self.kept(0.9 * self.velocities[name] + grad)
            weights[name] -= lr * self.taken(grad, velocity)

    def kept(self, velocity: Array) -> Array:
        return velocity

    def taken(self, grad: Array, velocity: Array) -> Array:
        return velocity

    def save(self) -> Weights:
        return self.export() | {f"momentum/{k}": v.copy() for k, v in self.velocities.items()}
