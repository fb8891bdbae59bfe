"""Answers to the exercises of the chapter "Write it yourself", in NumPy."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy  # `np` is MXNet's in its notebooks
from numpy.lib.stride_tricks import sliding_window_view

from common.base.arrays import Array, Weights
from common.compare.numpy_nets import step
from common.judge.judgement import require
from common.judge.readers import call

Message = tuple[int, int, int, bool]  # source, target, chunk, whether it is added


def ring(k: int) -> list[list[Message]]:
    """Each device sends on the chunk that it has just received; only the first k - 1 times add."""
    rounds = range(2 * (k - 1))
    return [[(i, (i + 1) % k, (i - r) % k, r < k - 1) for i in range(k)] for r in rounds]


def pipelined_ring(k: int, chunks: int = 16) -> list[list[Message]]:
    """Each chunk goes around the ring from device 0, a round after the chunk before it.

    All chunks are added in the order of the devices, so the sum does not depend on their number.
    """
    hops = 2 * (k - 1)
    rounds: list[list[Message]] = [[] for _ in range(chunks + hops - 1)]
    for chunk, hop in product(range(chunks), range(hops)):
        rounds[chunk + hop].append((hop % k, (hop + 1) % k, chunk, hop < k - 1))
    return rounds


def one_forward_one_backward(stages: int, microbatches: int) -> list[list[tuple[str, int]]]:
    """A stage goes backward with a microbatch once it is `ahead` of it by the later stages."""
    order: list[list[tuple[str, int]]] = [[] for _ in range(stages)]
    for stage, passes in enumerate(order):
        ahead = stages - stage - 1
        for i in range(microbatches + ahead):
            passes += [("F", i)] if i < microbatches else []
            passes += [("B", i - ahead)] if i >= ahead else []
    return order


def row_parallel_layer(X: Array, params: Weights, devices: Any) -> tuple[Array, Any]:
    """Each device has some rows of W, and the columns of X that meet them."""
    slices = numpy.array_split(params["weight"], len(devices))
    X_slices = numpy.array_split(X, len(devices), axis=1)

    def backward(dY: Array) -> tuple[list[Array], Weights]:
        dW = numpy.concatenate([X.T @ dY for X in X_slices])
        return [dY @ W.T for W in slices], {"weight": dW, "bias": dY.sum(axis=0)}

    products = [X @ W for X, W in zip(X_slices, slices, strict=True)]
    return devices.allreduce(products)[0] + params["bias"], backward


def zero1_update(
    params: list[Array], grads: list[Array], velocities: list[Array], lr: float, momentum: float
) -> None:
    """Each device updates its slice: the gradient is reduce-scattered, the weights all-gathered."""
    slices = numpy.array_split(numpy.arange(len(params[0])), len(params))
    for device, entries in enumerate(slices):
        grad = sum(local[entries] for local in grads)
        velocities[device] = momentum * velocities[device] + grad
        updated = params[device][entries] - lr * velocities[device]
        for copy in params:
            copy[entries] = updated


def numpy_lenet(weights: Mapping[str, Array], X: Array) -> Array:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    for layer in ("conv1", "conv2"):
        weight, bias = weights[f"{layer}.weight"], weights[f"{layer}.bias"]
        patches = sliding_window_view(X, weight.shape[2:], axis=(2, 3))
        X = numpy.einsum("nchwij,ocij->nohw", patches, weight, optimize=True)
        X = numpy.maximum(X + bias[:, None, None], 0)
        half = X.shape[2] // 2  # of 9 rows and columns, the last one is left out
        X = X[:, :, : 2 * half, : 2 * half].reshape(*X.shape[:2], half, 2, half, 2).mean((3, 5))
    X = numpy.maximum(X.reshape(len(X), -1) @ weights["fc1.weight"] + weights["fc1.bias"], 0)
    logits: Array = X @ weights["fc2.weight"] + weights["fc2.bias"]
    return logits


def loss_and_grad(weights: Mapping[str, Array], X: Array, y: Array) -> tuple[float, Weights]:
    """LeNet's mean loss over a minibatch, and its gradient, on one device."""
    exact = step("scratch", X, y, weights, [(0, len(y))])
    return exact.loss, exact.gradients


class Training:
    """SGD steps of LeNet, as the kind `step` calls them, by a `loss_and_grad` like the above."""

    def __init__(self, loss_and_grad: Callable[..., tuple[float, Weights]]) -> None:
        self.loss_and_grad = loss_and_grad

    def start(self, weights: Weights) -> None:
        self.params = weights

    def step(self, X: Array, y: Array, lr: float) -> float:
        loss, grads = self.loss_and_grad(self.params, X, y)
        self.params = {name: values - lr * grads[name] for name, values in self.params.items()}
        return loss

    def weights(self) -> Weights:
        return self.params


def with_zero1(update: Callable[..., None]) -> Callable[..., Any]:
    """The gradient by which `update` moves weights on three devices, without its momentum.

    Each tensor is a vector, of which each device has a copy, and the gradient of its shard.
    """
    velocities: dict[str, list[Array]] = {}
    last: Weights = {}

    def moved(weights: Mapping[str, Array], X: Array, y: Array) -> tuple[float, Weights]:
        shards = numpy.array_split(numpy.arange(len(y)), 3)
        shares = [len(shard) / len(y) for shard in shards]
        losses, grads = zip(*(loss_and_grad(weights, X[i], y[i]) for i in shards), strict=True)
        total = {}
        for name, values in weights.items():
            copies = [values.ravel().copy() for _ in shards]
            parts = [share * grad[name].ravel() for share, grad in zip(shares, grads, strict=True)]
            kept = velocities.setdefault(name, numpy.array_split(0 * copies[0], 3))
            call(update, copies, parts, kept, 0.5, 0.9)
            same = all(numpy.array_equal(copy, copies[0]) for copy in copies)
            require(same, f"{name} is not the same on all devices", "gradient")
            velocity = (values - copies[0].reshape(values.shape)) / 0.5
            total[name] = velocity - 0.9 * last.get(name, 0)
            last[name] = velocity
        return numpy.dot(shares, losses), total

    return moved
