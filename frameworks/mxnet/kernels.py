"""LeNet's operations in the form that is fast in MXNet (docs/performance.md)."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import mxnet as mx
from mxnet import np, npx

from common.base.arrays import Array
from common.parallel.shards import shard_bounds

Tensor: TypeAlias = np.ndarray
R = TypeVar("R")


def images(X: Tensor) -> Tensor:
    """Images (n, 1, rows, columns) with two more channels, of zeros: see `conv2d`."""
    return padded(X, len(X), 3, *X.shape[2:])


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (n, in, rows, columns) with `weight` (out, in, r, c), without padding.

    Its oneDNN has fast kernels only for 3 channels and multiples of 8. So `X` may have further
    channels of zeros, and the result (n, ceil(out / 8) * 8, rows - r + 1, columns - c + 1) has
    them, too: a step takes 80 ms in place of 181.
    """
    out, kernel = -(-len(weight) // 8) * 8, weight.shape[2:]
    weight, bias = padded(weight, out, X.shape[1], *kernel), padded(bias, out)
    return npx.convolution(X, weight, bias, kernel=kernel, num_filter=out)


def relu(X: Tensor) -> Tensor:
    """The larger one of each number and 0."""
    return npx.activation(X, act_type="relu")  # oneDNN has it, and no `npx.relu`


def avg_pool2d(X: Tensor) -> Tensor:
    """The means of 2 x 2 windows of `X` (n, channels, rows, columns); odd edges are dropped."""
    return npx.pooling(X, pool_type="avg", kernel=(2, 2), stride=(2, 2))


def dense(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`X` (n, in), or images flattened channels first, times `weight` (in, out), plus `bias`."""
    if X.ndim == 4:
        X = X.reshape(len(X), -1)
    return np.dot(X, padded(weight, X.shape[1], weight.shape[1])) + bias


def padded(X: Tensor, *shape: int) -> Tensor:
    """`X` with zeros behind its numbers along each axis, up to `shape`."""
    for axis, (old, new) in enumerate(zip(X.shape, shape, strict=True)):
        if new > old:
            missing = (*shape[:axis], new - old, *X.shape[axis + 1 :])
            X = np.concatenate((X, zeros(missing, X.dtype, X.ctx)), axis=axis)
    return X


@cache
def zeros(shape: tuple[int, ...], dtype: type, device: mx.Context) -> Tensor:
    """Zeros that are read, never changed: to make them takes as long as to add them to a tensor."""
    return np.zeros(shape, dtype, ctx=device)


def scatter(array: Array, devices: Sequence[mx.Context]) -> list[Tensor]:
    """The shards of an array, each on its device; their lengths differ by at most one."""
    bounds = shard_bounds(len(array), len(devices))
    return [
        np.array(array[a:b], array.dtype, ctx=device)
        for (a, b), device in zip(bounds, devices, strict=True)
    ]


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """The results of `function` for the arguments of each device; the engine queues operations."""
    # Each waits for its last gradient: a long queue would hold the images of many minibatches.
    results = []
    for call in zip(*arguments, strict=True):
        for params in (each for each in call if isinstance(each, dict)):
            if "fc2.weight" in params and params["fc2.weight"].grad is not None:
                params["fc2.weight"].grad.wait_to_read()
        results.append(function(*call, **same))
    return results
