"""How numbers lie in PyTorch, and how in the layout that all frameworks share.

The canonical layout is that of `common/models/nets.py`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from common.base.arrays import Array, Weights


def from_canonical(name: str, values: Array) -> Array:
    """A weight in PyTorch's layout: that of a dense layer is (out, in) there."""
    return values.T if name == "fc.weight" else values


def to_canonical(name: str, values: Array) -> Array:
    """The inverse of `from_canonical`."""
    return values.T if name == "fc.weight" else values


def on_host(tensor: Tensor) -> Array:
    """A copy of a tensor, on the host."""
    copy: Array = tensor.detach().cpu().numpy().copy()
    return copy


def load_weights(net: nn.Module, weights: Mapping[str, Array]) -> None:
    """Puts weights and running statistics, by canonical names, in their places in a net."""
    net.load_state_dict(
        {name: torch.from_numpy(from_canonical(name, v)) for name, v in weights.items()},
        strict=False,  # it also counts minibatches, which nothing needs
    )


def own_weights(net: nn.Module) -> Weights:
    """The weights and running statistics of a net, by canonical names: copies on the host."""
    return {
        name: to_canonical(name, on_host(values))
        for name, values in net.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
