"""The concise chapter in NumPy, and versions of it that each make a mistake people do make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import oracle
from named_devices import NamedDevices

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.compare.concise import ResNet18
from common.compare.numpy_layers import Layer
from common.models.nets import EPSILON, MOMENTUM, trainable
from common.parallel.replicas import saved_of
from common.parallel.shards import shard_bounds


@dataclass
class Net:
    """One net stands for all replicas: their shards are normalized each for itself."""

    weights: Weights
    batch_norm: str


class Layers(ResNet18):
    """A pass in evaluation mode that keeps what each layer makes."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self.made: Weights = {}

    def conv(self, X: Array, name: str, stride: int = 1, padding: int = 0) -> Layer:
        found = super().conv(X, name, stride, padding)
        self.made[name] = found[0]
        return found

    def norm(self, X: Array, name: str) -> Layer:
        found = super().norm(X, name)
        self.made[name] = found[0]
        return found


def layers(X: Array, weights: Weights, net: type[Layers] = Layers) -> Weights:
    """What each layer makes of a batch, by its name."""
    run = net(weights)
    logits, _ = run.forward(X)
    return {**run.made, "fc": logits}


class NumpyConcise(NamedDevices):
    """Satisfies `common.backends.interface.Concise`; its devices are names."""

    momentum = MOMENTUM
    net = Layers

    def replicate(
        self, weights: Mapping[str, Array], devices: Sequence[str], options: ConciseOptions
    ) -> Net:
        return Net(dict(weights), options.batch_norm)

    def step(
        self, X: Array, y: Array, net: Net, devices: Sequence[str]
    ) -> tuple[float, Weights, Weights]:
        shards = shard_bounds(len(X), len(devices) if net.batch_norm == "per-device" else 1)
        return oracle.loss_and_gradients("concise", X, y, net.weights, shards)

    def train_batch(
        self, X: Array, y: Array, net: Net, devices: Sequence[str], lr: float, options: object
    ) -> float:
        loss, gradients, statistics = self.step(X, y, net, devices)
        moved = self.momentum / MOMENTUM
        for name, values in statistics.items():
            net.weights[name] = net.weights[name] + moved * (values - net.weights[name])
        for name, values in gradients.items():
            net.weights[name] = net.weights[name] - lr * values
        return loss

    def gradients(
        self, X: Array, y: Array, net: Net, devices: Sequence[str], options: ConciseOptions
    ) -> Weights:
        return self.step(X, y, net, devices)[1]

    def predict(self, X: Array, net: Net, devices: Sequence[str]) -> Array:
        return self.activations(X, net, devices)["fc"]

    def activations(self, X: Array, net: Net, devices: Sequence[str]) -> Weights:
        return layers(X, net.weights, self.net)

    def export(self, net: Net) -> Weights:
        return net.weights

    def save(self, net: Net) -> Weights:
        return {k: v if trainable(k) else v[None] for k, v in net.weights.items()}

    def restore(self, saved: Mapping[str, Array], net: Net, devices: Sequence[str]) -> None:
        net.weights |= saved_of(saved, 0)

    def synchronize(self, net: Net) -> None:
        """There is nothing to wait for."""


class LargeEpsilon(Layers):
    """One layer has the epsilon that another framework takes if it is not told."""

    def norm(self, X: Array, name: str) -> Layer:
        if name != "stage3.block1.bn2":
            return super().norm(X, name)
        kept = self.weights[f"{name}.running_var"]
        self.weights = {**self.weights, f"{name}.running_var": kept + 1e-3 - EPSILON}
        return super().norm(X, name)


class WrongEpsilon(NumpyConcise):
    """Normalizes with another epsilon where it evaluates, in one layer of many."""

    net = LargeEpsilon


class WrongMomentum(NumpyConcise):
    """Takes the share of the old for the share of the new, as another framework's users mean it."""

    momentum = 1 - MOMENTUM


class LocalStatistics(NumpyConcise):
    """Normalizes by the shard where the whole minibatch was asked for."""

    def step(
        self, X: Array, y: Array, net: Net, devices: Sequence[str]
    ) -> tuple[float, Weights, Weights]:
        return super().step(X, y, Net(net.weights, "per-device"), devices)
