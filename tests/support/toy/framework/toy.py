"""One dense layer on several devices."""

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("toy", "toy"))

from collections.abc import Mapping, Sequence

import numpy as np
from common.chapters.toy import ToyOptions

from common.backends.devices import DeviceRequest, Devices, Process
from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.parallel.shards import same_everywhere, shard_bounds


def devices(process: Process, request: DeviceRequest) -> Devices[str]:
    """Virtual devices: there are no GPUs."""
    kind, count = request.settled(0, "the toy")
    return Devices.of(kind, [f"cpu:{index}" for index in range(count)], process)


def replicate(
    weights: Mapping[str, Array], devices: Sequence[str], options: ToyOptions
) -> list[Weights]:
    """One copy of the weights on each device."""
    return [{name: values.copy() for name, values in weights.items()} for _ in devices]


def logits(X: Array, weights: Weights) -> Array:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    found: Array = X.reshape(len(X), -1) @ weights["fc.weight"] + weights["fc.bias"]
    return found


def forward_backward(X: Array, y: Array, replicas: list[Weights]) -> tuple[float, Weights]:
    """The mean loss over the minibatch, and its gradient."""
    loss, total = 0.0, {name: np.zeros_like(values) for name, values in replicas[0].items()}
    for (a, b), weights in zip(shard_bounds(len(X), len(replicas)), replicas, strict=True):
        exponentials = np.exp(logits(X[a:b], weights))
        p = exponentials / exponentials.sum(axis=1, keepdims=True)
        loss -= float(np.log(p[np.arange(b - a), y[a:b]]).sum()) / len(X)
        p[np.arange(b - a), y[a:b]] -= 1
        total["fc.weight"] += X[a:b].reshape(b - a, -1).T @ p / len(X)
        total["fc.bias"] += p.sum(axis=0) / len(X)
    return loss, total


def train_batch(
    X: Array,
    y: Array,
    replicas: list[Weights],
    devices: Sequence[str],
    lr: float,
    options: ToyOptions,
) -> float:
    """One step of SGD on one minibatch; returns its mean loss."""
    loss, grads = forward_backward(options.gain * X, y, replicas)
    for weights in replicas:
        for name, values in weights.items():
            values -= lr * grads[name]
    return loss


def gradients(
    X: Array, y: Array, replicas: list[Weights], devices: Sequence[str], options: ToyOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    return forward_backward(options.gain * X, y, replicas)[1]


def predict(X: Array, replicas: list[Weights], devices: Sequence[str]) -> Array:
    """The logits (n, 10) of a batch."""
    return logits(X, replicas[0])


def export(replicas: list[Weights]) -> Weights:
    """The weights; checks that all replicas are the same."""
    return same_everywhere(replicas)


def save(replicas: list[Weights]) -> Weights:
    """All that the next step depends on."""
    return export(replicas)


def restore(saved: Mapping[str, Array], replicas: list[Weights], devices: Sequence[str]) -> None:
    """Puts every device's copy where `save` found others."""
    for weights in replicas:
        weights.update({name: values.copy() for name, values in saved.items()})


def synchronize(replicas: list[Weights]) -> None:
    """There is nothing to wait for."""
