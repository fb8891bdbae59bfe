"""LeNet on several devices from scratch, in JAX.

python -m frameworks.jax.scratch --devices 2 --preset quick
"""

if __name__ == "__main__":  # before JAX is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("jax", "scratch"))

from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax import Array as Tensor
from jax import numpy as jnp

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.parallel.shards import same_everywhere, shard_bounds
from frameworks.jax.collectives import allreduce_by
from frameworks.jax.devices import devices as devices
from frameworks.jax.devices import synchronize as synchronize

Params = dict[str, Tensor]


def get_params(weights: Mapping[str, Array], device: jax.Device) -> Params:
    """A copy of canonical weights on `device`, in their dtype."""
    # On a CPU, device_put alone would go on using the memory of the array.
    return {name: jax.device_put(values.copy(), device) for name, values in weights.items()}


def replicate(weights: Mapping[str, Array], devices: Sequence[jax.Device]) -> list[Params]:
    """One copy of the weights on each device."""
    return [get_params(weights, device) for device in devices]


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (in, rows, columns, n) with `weight` (out, in, r, c), without padding."""
    out, channels, r, c = weight.shape
    rows, columns, n = X.shape[1] - r + 1, X.shape[2] - c + 1, X.shape[3]
    # Patches times a matrix: on a CPU faster than lax.conv, whose gradient is slow there.
    strips = jnp.stack([X[:, i : i + rows] for i in range(r)], axis=1)
    patches = jnp.stack([strips[..., j : j + columns, :] for j in range(c)], axis=2)
    matrix = patches.reshape(channels * r * c, -1)
    Y = (weight.reshape(out, -1) @ matrix).reshape(out, rows, columns, n)
    return Y + bias[:, None, None, None]


def avg_pool2d(X: Tensor) -> Tensor:
    """The means of 2 x 2 windows of `X` (channels, rows, columns, n); odd edges are dropped."""
    channels, rows, columns, n = X.shape[0], X.shape[1] // 2, X.shape[2] // 2, X.shape[3]
    windows = X[:, : 2 * rows, : 2 * columns].reshape(channels, rows, 2, columns, 2, n)
    return windows.mean(axis=(2, 4))


@jax.jit
def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    h0 = X.transpose(1, 2, 3, 0)  # images last: what lies side by side is computed alike
    h1 = jax.nn.relu(conv2d(h0, params["conv1.weight"], params["conv1.bias"]))
    h1 = avg_pool2d(h1)
    h2 = jax.nn.relu(conv2d(h1, params["conv2.weight"], params["conv2.bias"]))
    h2 = avg_pool2d(h2).reshape(800, -1).T
    h3 = jax.nn.relu(h2 @ params["fc1.weight"] + params["fc1.bias"])
    return h3 @ params["fc2.weight"] + params["fc2.bias"]


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return -jnp.take_along_axis(jax.nn.log_softmax(y_hat), y[:, None], axis=1).squeeze(1)


def allreduce(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors that lie on k devices: one copy of it on each of them."""
    total = data[0]
    for tensor in data[1:]:
        total += jax.device_put(tensor, total.device)
    return [jax.device_put(total, tensor.device) for tensor in data]


def split_batch(
    X: Array, y: Array, devices: Sequence[jax.Device]
) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    bounds = shard_bounds(len(X), len(devices))
    return (
        [jax.device_put(X[a:b], device) for (a, b), device in zip(bounds, devices, strict=True)],
        [jax.device_put(y[a:b], device) for (a, b), device in zip(bounds, devices, strict=True)],
    )


@jax.jit
@jax.value_and_grad
def shard_loss(params: Params, X: Tensor, y: Tensor, examples: int) -> Tensor:
    """A shard's part of the mean loss over all `examples` of the minibatch."""
    return loss(lenet(X, params), y).sum() / examples


def sum_gradients(grads: Sequence[Params], algorithm: str) -> list[Params]:
    """The sum of k devices' gradients, on each of them."""
    if algorithm != "star":  # which is the book's
        return allreduce_by(algorithm, grads)
    summed = {name: allreduce([grad[name] for grad in grads]) for name in grads[0]}
    return [{name: copies[i] for name, copies in summed.items()} for i in range(len(grads))]


def forward_backward(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[jax.Device],
    algorithm: str,
) -> tuple[Tensor, list[Params]]:
    """The mean loss over the minibatch, and its gradient on each device."""
    losses, grads = [], []
    for X_shard, y_shard, params in zip(*split_batch(X, y, devices), device_params, strict=True):
        value, grad = shard_loss(params, X_shard, y_shard, len(X))
        losses.append(value)
        grads.append(grad)
    return allreduce(losses)[0], sum_gradients(grads, algorithm)


@jax.jit
def sgd(params: Params, grads: Params, lr: float) -> Params:
    """The parameters after one step of stochastic gradient descent on one device."""
    return {name: param - lr * grads[name] for name, param in params.items()}


def train_batch(
    X: Array,
    y: Array,
    device_params: list[Params],
    devices: Sequence[jax.Device],
    lr: float,
    algorithm: str = "star",
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    mean_loss, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    for i, grads in enumerate(device_grads):
        device_params[i] = sgd(device_params[i], grads, lr)
    return mean_loss


def gradients(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[jax.Device],
    algorithm: str = "star",
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    return {name: np.asarray(grad) for name, grad in device_grads[0].items()}


def predict(X: Array, device_params: Sequence[Params], devices: Sequence[jax.Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    bounds = shard_bounds(len(X), len(devices))
    logits = [
        lenet(jax.device_put(X[a:b], device), params)
        for (a, b), params, device in zip(bounds, device_params, devices, strict=True)
    ]
    return np.concatenate([np.asarray(shard) for shard in logits])


def export(device_params: Sequence[Params]) -> Weights:
    """The weights, by canonical names; checks that all replicas are the same."""
    return same_everywhere(
        [{name: np.asarray(param) for name, param in params.items()} for params in device_params]
    )
