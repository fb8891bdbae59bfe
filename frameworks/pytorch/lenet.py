"""LeNet's layers, one by one, as strategies split them, in PyTorch."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from frameworks.pytorch.kernels import avg_pool2d, conv2d, dense, relu
from frameworks.pytorch.scratch import layer, loss

__all__ = ["layer", "loss"]


def product(layers: Sequence[str], X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a column- and a row-parallel layer, without the latter's bias."""
    column, row = layers
    X, weight = layer(column, X, params), params[f"{row}.weight"]
    if row.startswith("conv"):
        return conv2d(X, weight, weight.new_zeros(len(weight)))
    return dense(X, weight, weight.new_zeros(weight.shape[1]))


def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)
