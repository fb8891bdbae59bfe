"""LeNet on several devices from scratch, in MXNet.

python -m frameworks.mxnet.scratch --devices 2 --preset quick
"""

if __name__ == "__main__":  # before MXNet is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("mxnet", "scratch"))

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import mxnet as mx
import numpy
from mxnet import autograd, gluon, np, npx

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.parallel.shards import same_everywhere, shard_bounds
from frameworks.mxnet.collectives import allreduce_by
from frameworks.mxnet.devices import devices as devices
from frameworks.mxnet.devices import synchronize as synchronize

Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]


def get_params(weights: Mapping[str, Array], device: mx.Context) -> Params:
    """A copy of canonical weights on `device`, in their dtype, ready for gradients."""
    params = {name: np.array(values, values.dtype, ctx=device) for name, values in weights.items()}
    for param in params.values():
        param.attach_grad()
    return params


def replicate(weights: Mapping[str, Array], devices: Sequence[mx.Context]) -> list[Params]:
    """One copy of the weights on each device."""
    return [get_params(weights, device) for device in devices]


def relu(X: Tensor) -> Tensor:
    """The larger one of each number and 0."""
    return npx.activation(X, act_type="relu")  # npx.relu takes several times as long


def padded(X: Tensor, *shape: int) -> Tensor:
    """`X` with zeros behind its numbers along each axis, up to `shape`."""
    for axis, (old, new) in enumerate(zip(X.shape, shape, strict=True)):
        if new > old:
            missing = (*shape[:axis], new - old, *X.shape[axis + 1 :])
            X = np.concatenate((X, np.zeros(missing, X.dtype, ctx=X.ctx)), axis=axis)
    return X


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (n, in, rows, columns) with `weight` (out, in, r, c), without padding.

    On a CPU only 3 channels and multiples of 8 are fast: `X` and the result (n, ceil(out / 8) * 8,
    rows - r + 1, columns - c + 1) get channels of zeros, which `X` may have already.
    """
    kernel = weight.shape[2:]
    out, channels = (-(-each // 8) * 8 if each > 3 else 3 for each in weight.shape[:2])
    X = padded(X, len(X), channels, *X.shape[2:])
    weight, bias = padded(weight, out, channels, *kernel), padded(bias, out)
    return npx.convolution(X, weight, bias, kernel=kernel, num_filter=out)


def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    h1 = relu(conv2d(X, params["conv1.weight"], params["conv1.bias"]))
    h1 = npx.pooling(h1, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h2 = relu(conv2d(h1, params["conv2.weight"], params["conv2.bias"]))
    h2 = npx.pooling(h2, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h2 = h2.reshape(-1, 56 * 16)  # 50 channels, and 6 of zeros
    h3 = relu(np.dot(h2, padded(params["fc1.weight"], 56 * 16, 128)) + params["fc1.bias"])
    return np.dot(h3, params["fc2.weight"]) + params["fc2.bias"]


loss = gluon.loss.SoftmaxCrossEntropyLoss()


def allreduce(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors that lie on k devices: one copy of it on each of them."""
    total = data[0].copy()
    for tensor in data[1:]:
        total += tensor.copyto(total.ctx)
    return [total.copyto(tensor.ctx) for tensor in data]


def split_batch(
    X: Array, y: Array, devices: Sequence[mx.Context]
) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    bounds = shard_bounds(len(X), len(devices))
    return (
        [np.array(X[a:b], X.dtype, ctx=d) for (a, b), d in zip(bounds, devices, strict=True)],
        [np.array(y[a:b], y.dtype, ctx=d) for (a, b), d in zip(bounds, devices, strict=True)],
    )


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
    devices: Sequence[mx.Context],
    algorithm: str,
) -> tuple[Tensor, list[Params]]:
    """The mean loss over the minibatch, and its gradient on each device."""
    X_shards, y_shards = split_batch(X, y, devices)
    with autograd.record():
        losses = [
            loss(lenet(X_shard, params), y_shard).sum() / len(X)
            for X_shard, y_shard, params in zip(X_shards, y_shards, device_params, strict=True)
            if len(X_shard)  # MXNet cannot add up nothing
        ]
    for shard_loss in losses:
        shard_loss.backward()
    for params in device_params[len(losses) :]:  # no examples: an earlier gradient must not count
        for param in params.values():
            param.grad[:] = 0
    grads = [{name: param.grad for name, param in params.items()} for params in device_params]
    return allreduce(losses)[0], sum_gradients(grads, algorithm)


def sgd(params: Params, grads: Params, lr: float) -> None:
    """One step of stochastic gradient descent on one device, in place."""
    for name, param in params.items():
        param -= lr * grads[name]


def train_batch(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[mx.Context],
    lr: float,
    algorithm: str = "star",
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    # Far ahead of the engine, one would hold the images of all minibatches that wait for it.
    device_params[0]["fc2.weight"].grad.wait_to_read()
    mean_loss, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    for params, grads in zip(device_params, device_grads, strict=True):
        sgd(params, grads, lr)
    return mean_loss


def gradients(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[mx.Context],
    algorithm: str = "star",
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    return {name: grad.asnumpy() for name, grad in device_grads[0].items()}


def predict(X: Array, device_params: Sequence[Params], devices: Sequence[mx.Context]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    bounds = shard_bounds(len(X), len(devices))
    logits = [
        lenet(np.array(X[a:b], X.dtype, ctx=device), params)
        for (a, b), params, device in zip(bounds, device_params, devices, strict=True)
        if b > a  # MXNet cannot convolve nothing
    ]
    return numpy.concatenate([shard.asnumpy() for shard in logits])


def export(device_params: Sequence[Params]) -> Weights:
    """The weights, by canonical names; checks that all replicas are the same."""
    return same_everywhere(
        [{name: param.asnumpy() for name, param in params.items()} for params in device_params]
    )
