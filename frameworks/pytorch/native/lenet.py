"""LeNet as PyTorch's modules; its parameters have their canonical names."""

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import functional as F

from common.base.arrays import Array, Weights
from frameworks.pytorch.kernels import avg_pool2d, conv2d, relu
from frameworks.pytorch.layouts import on_host


class Convolution(nn.Conv2d):
    """A convolution, an activation, and pooling."""

    def forward(self, X: Tensor) -> Tensor:
        """`X` (n, in, rows, columns), to half as many rows and columns."""
        assert self.bias is not None
        return avg_pool2d(relu(conv2d(X, self.weight, self.bias)))


class Dense(nn.Linear):
    """A dense layer and an activation; images are flattened."""

    def forward(self, X: Tensor) -> Tensor:
        """`X` (n, in) or (n, channels, rows, columns), to (n, out)."""
        return F.relu(super().forward(X.flatten(1)))


def lenet(depth: int) -> nn.Sequential:
    """LeNet with `depth` dense layers of 128 more; a stage of a pipeline is a slice of it."""
    hidden = {f"hidden{number}": Dense(128, 128) for number in range(1, depth + 1)}
    layers: dict[str, nn.Module] = {
        "conv1": Convolution(1, 20, 3),
        "conv2": Convolution(20, 50, 5),
        "fc1": Dense(800, 128),
        **hidden,
        "fc2": nn.Linear(128, 10),
    }
    return nn.Sequential(OrderedDict(layers))


def fill(values: Array, tensor: Tensor) -> None:
    """Copies a whole tensor, or the process's shard of it, into a parameter."""
    turned = torch.from_numpy(values.T.copy() if values.ndim == 2 else values).to(tensor.device)
    if isinstance(tensor, DTensor):  # every process has the whole: nothing is sent
        mesh, placements = tensor.device_mesh, tensor.placements
        turned = distribute_tensor(turned, mesh, placements, src_data_rank=None)
    with torch.no_grad():
        tensor.copy_(turned)


def whole(tensors: Mapping[str, Tensor]) -> Weights:
    """Whole tensors on the host, (in, out) if dense; a collective where they are sharded."""
    arrays = {name: on_host(tensor) for name, tensor in tensors.items()}
    return {name: values.T if values.ndim == 2 else values for name, values in arrays.items()}
