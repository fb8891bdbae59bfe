"""PyTorch's layout of weights, and the canonical one of `common/models/nets.py`."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from common.base.arrays import Array, Weights


def from_canonical(name: str, values: Array) -> Array:
    """A weight in PyTorch's layout: (out, in) for a dense layer."""
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
    loaded = {name: torch.from_numpy(from_canonical(name, v)) for name, v in weights.items()}
    for name, own in net.state_dict().items():
        if isinstance(own, DTensor):  # replicated: nothing is sent
            whole = loaded[name].to(own.device)
            loaded[name] = distribute_tensor(
                whole, own.device_mesh, own.placements, src_data_rank=None
            )
    net.load_state_dict(loaded, strict=False)  # it also counts minibatches, which nothing needs


def local_weights(net: nn.Module) -> Weights:
    """The weights and running statistics of a net, by canonical names: copies on the host."""
    return {
        name: to_canonical(name, on_host(values))
        for name, values in net.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
