"""One dense layer: each device has some of its columns, and the velocity of these alone."""

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("toy", "toy"))

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from common.chapters.toy import ToyOptions

from common.backends.devices import ALONE, DeviceRequest, Devices, Process
from common.base.arrays import Array, Weights
from common.parallel.shards import shard_bounds


@dataclass
class Part:
    """What one device has: columns of the weights, and of the velocities with momentum."""

    columns: slice
    weights: Weights
    velocities: Weights


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: ToyOptions,
    process: Process = ALONE,
) -> None:
    """One process has all devices."""
    worker(process)


def devices(process: Process, request: DeviceRequest) -> Devices[str]:
    """Virtual devices: there are no GPUs."""
    kind, count = request.settled(0, "the toy")
    return Devices.of(kind, [f"cpu:{index}" for index in range(count)], process)


def replicate(
    weights: Mapping[str, Array], devices: Sequence[str], options: ToyOptions
) -> list[Part]:
    """Each device's columns; 10 of them need not be even."""
    bounds = shard_bounds(10, len(devices))
    if options.split == "reversed":
        bounds.reverse()
    parts = [Part(slice(a, b), {}, {}) for a, b in bounds]
    for part in parts:
        part.weights = columns_of(weights, part)
        if options.momentum:
            part.velocities = {name: 0 * values for name, values in part.weights.items()}
    return parts


def columns_of(whole: Mapping[str, Array], part: Part) -> Weights:
    """A copy of a device's columns."""
    return {name: values[..., part.columns].copy() for name, values in whole.items()}


def gathered(parts: Sequence[Part], held: Sequence[Weights]) -> Weights:
    """What all devices hold, each of its own columns, as a whole."""
    order = sorted(range(len(parts)), key=lambda device: parts[device].columns.start)
    return {
        name: np.concatenate([held[device][name] for device in order], axis=-1) for name in held[0]
    }


def predict(X: Array, parts: list[Part], devices: Sequence[str]) -> Array:
    """The logits (n, 10) of images `X` (n, 1, 28, 28), some columns from each device."""
    rows = X.reshape(len(X), -1)
    made = [{"y": rows @ part.weights["fc.weight"] + part.weights["fc.bias"]} for part in parts]
    return gathered(parts, made)["y"]


def forward_backward(X: Array, y: Array, parts: list[Part]) -> tuple[float, list[Weights]]:
    """The mean loss of a minibatch, and its gradient: of each device's columns."""
    exponentials = np.exp(predict(X, parts, []))
    p = exponentials / exponentials.sum(axis=1, keepdims=True)
    every = np.arange(len(y))
    loss = -float(np.log(p[every, y]).mean())
    p[every, y] -= 1
    p /= len(y)
    grads = []
    for part in parts:
        own = p[:, part.columns]
        grads.append({"fc.weight": X.reshape(len(X), -1).T @ own, "fc.bias": own.sum(axis=0)})
    return loss, grads


def train_batch(
    X: Array,
    y: Array,
    parts: list[Part],
    devices: Sequence[str],
    lr: float,
    options: ToyOptions,
) -> float:
    """One step of SGD with momentum on one minibatch; returns its mean loss."""
    loss, grads = forward_backward(X, y, parts)
    for part, grad in zip(parts, grads, strict=True):
        for name, step in grad.items():
            if options.momentum:
                step = part.velocities[name] = options.momentum * part.velocities[name] + step
            part.weights[name] -= lr * step
    return loss


def gradients(
    X: Array, y: Array, parts: list[Part], devices: Sequence[str], options: ToyOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    return gathered(parts, forward_backward(X, y, parts)[1])


def export(parts: list[Part]) -> Weights:
    """The whole weights."""
    return gathered(parts, [part.weights for part in parts])


def save(parts: list[Part]) -> Weights:
    """All that the next step depends on."""
    velocities = gathered(parts, [part.velocities for part in parts])
    return export(parts) | {f"momentum/{name}": values for name, values in velocities.items()}


def restore(saved: Mapping[str, Array], parts: list[Part], devices: Sequence[str]) -> None:
    """Gives every device its columns of what was saved, however that was split."""
    for part in parts:
        own = columns_of(saved, part)
        part.velocities = {name: own.pop(f"momentum/{name}") for name in part.velocities}
        part.weights = own


def synchronize(parts: list[Part]) -> None:
    """There is nothing to wait for."""
