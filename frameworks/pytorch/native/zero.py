"""Data parallelism and ZeRO: DDP, a ZeRO optimizer, and FSDP, on a mesh with replicas of groups."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from common.base.arrays import Array, Weights
from common.parallel.replicas import joined
from common.parallel.shards import shard_bounds
from common.trainers.strategies import require_parts
from frameworks.pytorch import hosts
from frameworks.pytorch.layouts import on_host
from frameworks.pytorch.native.training import Training, cross_entropy, on_device, velocity


class Replicated(Training):
    """By DDP: a replica of the net in each process, which takes a shard of each minibatch."""

    def split(self, net: nn.Sequential) -> nn.Module:
        """All of it, in a wrapper that sums the gradients of all processes."""
        self.wrapped = self.wrap(net)
        return net

    def wrap(self, net: nn.Sequential) -> nn.Module:
        """The wrapper that sums the gradients of all processes."""
        gpu = [self.device] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(net, device_ids=gpu)

    def accumulating(self) -> AbstractContextManager[Any]:
        """A context in which gradients accumulate without an all-reduce."""
        assert isinstance(self.wrapped, nn.parallel.DistributedDataParallel)
        return self.wrapped.no_sync()

    def forward_backward(self, X: Array, y: Array) -> Tensor:
        """The mean loss of a minibatch; its gradient is left in the parameters."""
        self.optimizer.zero_grad()
        here = slice(*shard_bounds(len(X), dist.get_world_size())[dist.get_rank()])
        X_shard, y_shard = on_device((X[here], y[here]), self.device)
        mean_loss = X_shard.new_zeros(())
        bounds = shard_bounds(len(X_shard), self.plan.microbatches)
        for left, (start, stop) in zip(range(len(bounds))[::-1], bounds, strict=True):
            # DDP sums the processes' gradients once; FSDP adds those of each microbatch.
            with self.accumulating() if left else nullcontext():
                logits = self.wrapped(X_shard[start:stop])
                params = (on_this_process(param) for param in self.net.parameters())
                require_parts(self.plan, [sum(param.numel() for param in params)])
                loss = cross_entropy(logits, y_shard[start:stop], len(X))
                # DDP and FSDP divide the sum of all gradients by the number of processes.
                (loss * dist.get_world_size()).backward()
            mean_loss += loss.detach()
        dist.all_reduce(mean_loss)
        return mean_loss

    @torch.no_grad()
    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch; each process computes its shard."""
        here = slice(*shard_bounds(len(X), dist.get_world_size())[dist.get_rank()])
        return joined(on_host(self.net(*on_device([X[here]], self.device))), hosts.gathered)


def on_this_process(param: Tensor) -> Tensor:
    """A shard, or all of a parameter that is gathered."""
    return param.to_local() if isinstance(param, DTensor) else param


class Zero1(Replicated):
    """By DDP and a ZeRO optimizer: each process has the momentum of some whole weights."""

    def optimize(self) -> torch.optim.Optimizer:
        """An optimizer that updates some parameters in each process, then broadcasts them."""
        with warnings.catch_warnings():  # PyTorch warns of how it makes this package
            warnings.simplefilter("ignore", DeprecationWarning)
            from torch.distributed.optim import ZeroRedundancyOptimizer
        self.group = self.mesh.get_group("part")
        params, sgd = self.net.parameters(), torch.optim.SGD
        return ZeroRedundancyOptimizer(params, sgd, process_group=self.group)

    def velocity(self, param: nn.Parameter) -> Tensor:
        """The velocity of a parameter that this process updates, or zeros."""
        optimizer: Any = self.optimizer
        local = [p for group in optimizer.optim.param_groups for p in group["params"]]
        if any(param is p for p in local):
            return velocity(optimizer.optim, param)
        return torch.zeros_like(param)

    def velocities(self) -> Weights:
        """The whole velocity of each weight."""
        summed = {name: self.velocity(p).clone() for name, p in self.net.named_parameters()}
        for tensor in summed.values():
            dist.all_reduce(tensor, group=self.group)
        return self.full_tensors(summed)


class Zero2(Replicated):
    """By FSDP that keeps gathered parameters from the forward until after the backward pass."""

    reshard = False

    def wrap(self, net: nn.Sequential) -> nn.Module:
        """A sharded net, gathered layer by layer."""
        mesh = self.mesh if self.plan.replicas > 1 else self.mesh["part"]
        for layer in [*net.children(), net]:
            fully_shard(layer, mesh=mesh, reshard_after_forward=self.reshard)
        return net

    def accumulating(self) -> AbstractContextManager[Any]:
        """A context that changes nothing: gradients accumulate in each process's shard."""
        return nullcontext()

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch; reshards what a forward pass by itself leaves gathered."""
        logits = super().predict(X)
        for layer in [*self.net.children(), self.net]:
            assert isinstance(layer, FSDPModule)
            layer.reshard()
        return logits


class Zero3(Zero2):
    """By FSDP that gathers a layer's parameters for each pass, and frees them after it."""

    reshard = True
