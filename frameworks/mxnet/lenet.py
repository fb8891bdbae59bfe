"""LeNet's layers, one by one, as strategies split them, in MXNet."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import mxnet as mx
from mxnet import np

from frameworks.mxnet import scratch
from frameworks.mxnet.kernels import avg_pool2d, conv2d, dense, padded, relu
from frameworks.mxnet.primitives import with_empty_batches
from frameworks.mxnet.scratch import loss

__all__ = ["loss"]

Tensor: TypeAlias = np.ndarray


def widened(X: Tensor) -> Tensor:
    """`X` (n, channels, rows, columns) with as many more channels of zeros as `conv2d` wants."""
    channels = X.shape[1]
    return padded(X, len(X), 3 if channels <= 3 else -(-channels // 8) * 8, *X.shape[2:])


def first(Y: Tensor, channels: int) -> Tensor:
    """The first channels of `Y` (n, channels, rows, columns): devices keep and send no others."""
    # `Y[:, :channels]` fails: oneDNN cuts channels only at multiples of 8.
    cut = mx.nd.slice_axis(Y.as_nd_ndarray(), axis=1, begin=0, end=channels)
    return cut.as_np_ndarray()


@with_empty_batches
def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    if name.startswith("conv"):
        return first(scratch.layer(name, widened(X), params), len(params[f"{name}.bias"]))
    return scratch.layer(name, X, params)


@with_empty_batches
def product(layers: Sequence[str], X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a column- and a row-parallel layer, without the latter's bias."""
    column, row = layers
    X, weight = layer(column, X, params), params[f"{row}.weight"]
    outputs = len(weight) if row.startswith("conv") else weight.shape[1]
    zeros = np.zeros(outputs, weight.dtype, ctx=weight.ctx)
    if row.startswith("conv"):
        return first(conv2d(widened(X), weight, zeros), outputs)
    return dense(X, weight, zeros)


@with_empty_batches
def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)
