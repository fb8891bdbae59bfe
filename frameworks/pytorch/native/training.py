"""The step and the local tensors, shared by PyTorch's native strategies."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional as F

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.replicas import same_everywhere
from common.trainers.strategies import SplitTrainer, zeros
from frameworks.pytorch import hosts
from frameworks.pytorch.kernels import to_device
from frameworks.pytorch.native.lenet import fill, lenet, whole


class Training(SplitTrainer):
    """The part of a net that this process trains; rows of the mesh share a net."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        devices: Sequence[torch.device],
        options: StrategiesOptions,
    ) -> None:
        (self.device,) = devices
        self.plan = options.plan(dist.get_world_size())
        shape = (options.replicas, dist.get_world_size() // options.replicas)
        names = ("replica", "part")
        self.mesh = init_device_mesh(self.device.type, shape, mesh_dim_names=names)
        self.dtype = torch.as_tensor(weights["fc2.bias"]).dtype
        self.net = self.split(lenet(options.depth).to(self.device, self.dtype))
        self.optimizer = self.optimize()
        self.momentum = options.momentum
        self.put(weights, zeros(weights))

    def split(self, net: nn.Sequential) -> nn.Module:
        """The shard of the net on this process."""
        raise NotImplementedError

    def optimize(self) -> torch.optim.Optimizer:
        """The optimizer of this process's parameters."""
        return torch.optim.SGD(self.net.parameters())

    def forward_backward(self, X: Array, y: Array) -> Tensor:
        """The mean loss of a minibatch; its gradient is left in the parameters."""
        raise NotImplementedError

    def train_batch(self, X: Array, y: Array, lr: float) -> Tensor:
        """One step of SGD with momentum on a minibatch; returns its mean loss."""
        mean_loss = self.forward_backward(X, y)
        for group in self.optimizer.param_groups:
            group["lr"], group["momentum"] = lr, self.momentum
        self.optimizer.step()
        return mean_loss

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        self.forward_backward(X, y)
        params = dict(self.net.named_parameters())
        return self.full_tensors({name: p.grad for name, p in params.items() if p.grad is not None})

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        weights = self.full_tensors(dict(self.net.named_parameters()))
        return same_everywhere([weights], hosts.gathered)

    def velocities(self) -> Weights:
        """The whole velocity of each weight."""
        return self.full_tensors({k: self.velocity(p) for k, p in self.net.named_parameters()})

    def velocity(self, param: nn.Parameter) -> Tensor:
        """A parameter's velocity in this process: SGD makes one at its first step."""
        return velocity(self.optimizer, param)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives this process its part of the weights and of their velocities."""
        for name, param in self.net.named_parameters():
            fill(weights[name], param)
            fill(velocities[name], self.velocity(param))

    def full_tensors(self, tensors: Mapping[str, Tensor]) -> Weights:
        """Whole tensors, gathered from all processes."""
        return whole(tensors)


def velocity(optimizer: torch.optim.Optimizer, param: nn.Parameter) -> Tensor:
    """An optimizer's momentum buffer of a parameter."""
    buffer: Tensor = optimizer.state[param].setdefault("momentum_buffer", torch.zeros_like(param))
    return buffer


def cross_entropy(logits: Tensor, y: Tensor, examples: int) -> Tensor:
    """Some examples' part of the mean loss over all `examples`; a class of -100 does not count."""
    return F.cross_entropy(logits, y, reduction="sum", ignore_index=-100) / examples


def on_device(arrays: Sequence[Array], device: torch.device) -> list[Tensor]:
    """Arrays of the host on a device."""
    return [to_device(torch.as_tensor(array), device) for array in arrays]
