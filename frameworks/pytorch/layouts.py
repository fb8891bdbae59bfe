"""PyTorch's layout of weights, and the canonical one of `common/models/nets.py`."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from common.base.arrays import Array, Weights


def from_canonical(name: str, values: Array) -> Array:
    """A weight in PyTorch's layout: that of a dense layer is (out, in) there."""
    return values.T if name == "fc.weight" else values


def to_canonical(name: str, values: Array) -> Array:
    """The inverse of `from_canonical`."""
    return values.T if name == "fc.weight" else values


def on_host(tensor: Tensor) -> Array:
    """A copy of a tensor, on the host; all processes ask for one that is split over them."""
    if isinstance(tensor, DTensor):
        tensor = tensor.full_tensor()
    copy: Array = tensor.detach().cpu().numpy().copy()
    return copy


def load_weights(net: nn.Module, weights: Mapping[str, Array]) -> None:
    """Puts weights and running statistics, by canonical names, in their places in a net."""
    given = {name: torch.from_numpy(from_canonical(name, v)) for name, v in weights.items()}
    for name, own in net.state_dict().items():
        if isinstance(own, DTensor):  # of which every process has all: nothing is sent
            whole = given[name].to(own.device)
            given[name] = distribute_tensor(
                whole, own.device_mesh, own.placements, src_data_rank=None
            )
    net.load_state_dict(given, strict=False)  # it also counts minibatches, which nothing needs


def own_weights(net: nn.Module) -> Weights:
    """The weights and running statistics of a net, by canonical names: copies on the host."""
    return {
        name: to_canonical(name, on_host(values))
        for name, values in net.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
