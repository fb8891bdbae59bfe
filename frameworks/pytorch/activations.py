"""What each layer of ResNet-18 makes of a batch in PyTorch."""

from typing import Any

import torch
from torch import Tensor, nn

from common.base.arrays import Array, Weights
from frameworks.pytorch.layouts import on_host


def layer_outputs(X: Array, net: nn.Module, device: torch.device) -> Weights:
    """What each layer with weights makes of a batch, by its name; the net evaluates it."""
    found: Weights = {}

    def keep(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            found[name] = on_host(output)

        return hook

    net.eval()
    layers = {name: layer for name, layer in net.named_modules() if hasattr(layer, "weight")}
    hooks = [layer.register_forward_hook(keep(name)) for name, layer in layers.items()]
    with torch.no_grad():
        net(torch.as_tensor(X).to(device))
    for hook in hooks:
        hook.remove()
    return {name: found[name] for name in layers}
