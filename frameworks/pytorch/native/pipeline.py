"""Consecutive layers in each process, by `torch.distributed.pipelining`: padded microbatches."""

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import PipelineScheduleSingle

from common.base.arrays import Array, Weights
from common.parallel.replicas import joined
from frameworks.pytorch import hosts
from frameworks.pytorch.layouts import on_host
from frameworks.pytorch.native.lenet import whole
from frameworks.pytorch.native.training import Training, cross_entropy, on_device

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Staged(Training):
    """Each process of a row has a stage of the net; a row is a pipeline."""

    def split(self, net: nn.Sequential) -> nn.Module:
        """The layers of a stage."""
        self.row, self.stage = (self.mesh.get_local_rank(axis) for axis in ("replica", "part"))
        self.schedules: dict[tuple[int, bool], PipelineScheduleSingle] = {}
        layers = dict(net.named_children())
        stage = {name: layers[name] for name in self.plan.stages[self.stage]}
        return nn.Sequential(OrderedDict(stage))

    @property
    def last(self) -> bool:
        """Whether this process has the last stage."""
        return self.stage == self.plan.devices - 1

    def schedule(self, examples: int, training: bool) -> PipelineScheduleSingle:
        """The pipeline's schedule for batches of this size."""
        if (examples, training) not in self.schedules:
            stage = PipelineStage(
                self.net,
                self.stage,
                self.plan.devices,
                self.device,
                group=self.mesh.get_group("part"),
            )
            loss = self.loss if training else None
            self.schedules[examples, training] = SCHEDULES[self.plan.schedule](
                stage, self.plan.microbatches, loss, scale_grads=False
            )
        return self.schedules[examples, training]

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """A microbatch's part of the mean loss."""
        return cross_entropy(logits, y, self.examples)

    def filled_up(self, X: Array, y: Array) -> list[Tensor]:
        """The examples of this row, as many as microbatches of one size have."""
        here = self.plan.rows_of(len(X))[self.row]
        size = -(-max(1, len(X[here])) // self.plan.microbatches)
        missing = size * self.plan.microbatches - len(X[here])
        images = np.concatenate([X[here], np.zeros((missing, *X.shape[1:]), X.dtype)])
        return on_device(
            (images, np.concatenate([y[here], np.full(missing, -100, y.dtype)])), self.device
        )

    def forward_backward(self, X: Array, y: Array) -> Tensor:
        """The mean loss of a minibatch; its gradient is left in the parameters."""
        self.optimizer.zero_grad()
        self.examples = len(X)
        images, classes = self.filled_up(X, y)
        losses: list[Tensor] = []
        schedule, inputs = self.schedule(len(images), training=True), [images] * (self.stage == 0)
        if self.last:
            schedule.step(*inputs, target=classes, losses=losses)
        else:
            schedule.step(*inputs)
        if self.plan.replicas > 1:
            for param in self.net.parameters():
                assert param.grad is not None
                dist.all_reduce(param.grad, group=self.mesh.get_group("replica"))
        mean_loss = torch.stack(losses).sum() if losses else images.new_zeros(())
        mean_loss = mean_loss.detach()
        dist.all_reduce(mean_loss)
        return mean_loss

    @torch.no_grad()
    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, which the last stage has."""
        self.examples = len(X)
        images, _ = self.filled_up(X, np.zeros(len(X), np.int64))
        logits = self.schedule(len(images), training=False).eval(*[images] * (self.stage == 0))
        here = self.plan.rows_of(len(X))[self.row]
        rows = on_host(logits)[: len(X[here])] if self.last else np.zeros((0, 10), X.dtype)
        return joined(rows, hosts.gathered)

    def full_tensors(self, tensors: Mapping[str, Tensor]) -> Weights:
        """All tensors of the net, gathered from the stages."""
        ranks = dist.get_process_group_ranks(self.mesh.get_group("part"))
        gathered = {}
        for name, shape in self.plan.shapes.items():
            layer, _, _ = name.partition(".")
            stage = next(i for i, layers in enumerate(self.plan.stages) if layer in layers)
            room = torch.empty(shape[::-1] if len(shape) == 2 else shape, dtype=self.dtype)
            gathered[name] = (
                tensors[name].detach().clone() if name in tensors else room.to(self.device)
            )
            dist.broadcast(gathered[name], ranks[stage], group=self.mesh.get_group("part"))
        return whole(gathered)
