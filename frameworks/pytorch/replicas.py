"""Functions of the harness for the concise chapter's replicas in PyTorch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.tensor import DTensor

from common.base.arrays import Array, Weights
from frameworks.pytorch.concise import Replicas, forward_backward
from frameworks.pytorch.layouts import load_weights, local_weights, on_host, to_canonical


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; a pass moves running statistics."""
    forward_backward(X, y, replicas, examples)
    grads = {name: param.grad for name, param in replicas.net.module.named_parameters()}
    return {name: to_canonical(name, on_host(g)) for name, g in grads.items() if g is not None}


def bias(replicas: Replicas) -> Tensor:
    """A copy of the last layer's bias (10,)."""
    held = replicas.net.module.get_parameter("fc.bias").detach()
    return (held.full_tensor() if isinstance(held, DTensor) else held).clone()


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device of this process: with DP, the first one's."""
    return [local_weights(replicas.net.module) for _ in replicas.devices]


def put(per_device: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    load_weights(replicas.net.module, per_device[dist.get_rank()])


def activations(X: Array, replicas: Replicas) -> Weights:
    """The output of each layer with weights, on the first device, by its name."""
    net, outputs = replicas.net.module, Weights()

    def keep(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            outputs[name] = on_host(output)

        return hook

    net.eval()
    layers = {name: layer for name, layer in net.named_modules() if hasattr(layer, "weight")}
    hooks = [layer.register_forward_hook(keep(name)) for name, layer in layers.items()]
    with torch.no_grad():
        net(torch.as_tensor(X).to(replicas.devices[0]))
    for hook in hooks:
        hook.remove()
    return {name: outputs[name] for name in layers}
