"""What each layer of ResNet-18 makes of a batch in PyTorch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from common.base.arrays import Array, Weights

if TYPE_CHECKING:
    from frameworks.pytorch.concise import Replicas


def activations(X: Array, replicas: "Replicas", devices: Sequence[torch.device]) -> Weights:
    """What each layer with weights makes of a batch on this process's device, by its name."""
    found: Weights = {}

    def keep(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            found[name] = output.cpu().numpy()

        return hook

    net = replicas.net.module.eval()
    layers = {name: layer for name, layer in net.named_modules() if hasattr(layer, "weight")}
    hooks = [layer.register_forward_hook(keep(name)) for name, layer in layers.items()]
    with torch.no_grad():
        net(torch.as_tensor(X).to(replicas.device))
    for hook in hooks:
        hook.remove()
    return {name: found[name] for name in layers}
