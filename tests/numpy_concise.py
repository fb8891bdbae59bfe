"""The concise chapter on its judge, and versions of it that each make a mistake people do make."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import resnet_judge

from common.interface import Array, Weights
from common.splitting import shard_bounds


@dataclass
class Net:
    """One net stands for all replicas: the judge normalizes their shards each for itself."""

    weights: Weights
    batch_norm: str


class NumpyConcise:
    """Satisfies `common.interface.Concise`; its devices are names."""

    momentum = resnet_judge.MOMENTUM

    def devices(self, count: int | None, kind: str, threads: int) -> list[str]:
        return [f"numpy:{index}" for index in range(count or 2)]

    def launch(self, worker: Callable[[int], None], count: int, /, **options: str) -> None:
        worker(0)

    def replicate(
        self,
        weights: Mapping[str, Array],
        devices: Sequence[str],
        /,
        *,
        batch_norm: str = "per-device",
        wrapper: str = "",
    ) -> Net:
        return Net(dict(weights), batch_norm)

    def step(
        self, X: Array, y: Array, net: Net, devices: Sequence[str]
    ) -> tuple[float, Weights, Weights]:
        shards = shard_bounds(len(X), len(devices) if net.batch_norm == "per-device" else 1)
        return resnet_judge.loss_and_gradients(X, y, net.weights, shards)

    def train_batch(self, X: Array, y: Array, net: Net, devices: Sequence[str], lr: float) -> float:
        loss, gradients, statistics = self.step(X, y, net, devices)
        moved = self.momentum / resnet_judge.MOMENTUM
        for name, values in statistics.items():
            net.weights[name] = net.weights[name] + moved * (values - net.weights[name])
        for name, values in gradients.items():
            net.weights[name] = net.weights[name] - lr * values
        return loss

    def gradients(self, X: Array, y: Array, net: Net, devices: Sequence[str]) -> Weights:
        return self.step(X, y, net, devices)[1]

    def predict(self, X: Array, net: Net, devices: Sequence[str]) -> Array:
        return resnet_judge.logits(X, net.weights)

    def export(self, net: Net) -> Weights:
        return net.weights

    def synchronize(self, net: Net) -> None:
        """There is nothing to wait for."""


class WrongMomentum(NumpyConcise):
    """Takes the share of the old for the share of the new, as another framework's users mean it."""

    momentum = 1 - resnet_judge.MOMENTUM


class LocalStatistics(NumpyConcise):
    """Normalizes by the shard where the whole minibatch was asked for."""

    def step(
        self, X: Array, y: Array, net: Net, devices: Sequence[str]
    ) -> tuple[float, Weights, Weights]:
        return super().step(X, y, Net(net.weights, "per-device"), devices)
