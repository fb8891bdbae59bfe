"""A replica of the model on the devices of a group, and gradients accumulated over microbatches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.strategies.collectives import allreduce_in_place
from frameworks.strategies.primitives import Net, Primitives, Tensor


@dataclass(frozen=True)
class Replica:
    """The devices of a model-parallel group, the plan of a strategy, and the parameters there."""

    ops: Primitives
    net: Net
    plan: Plan
    group: Group
    params: Sequence[Kept]

    def place(self, values: Array, shards: Sequence[slice] = ()) -> list[Tensor]:
        """A copy of the values on each device, or of its examples and tokens of them.

        Tokens and labels count from the first word of a device; -1, no label, stays.
        """
        rows = shards or [slice(None)] * len(self.group.devices)
        placed = []
        for number, (here, device) in enumerate(zip(rows, self.group.devices, strict=True)):
            local = values[here]
            if tokens := self.plan.tokens_of(number):
                local = local[:, tokens]
            if first := self.plan.first_word(number):
                local = np.where(local < 0, -1, (local - first) % self.plan.vocabulary)
            placed.append(self.ops.place(local, device))
        return placed


Forward: TypeAlias = Callable[[Replica, list[Tensor]], tuple[list[Tensor], list[list[Tensor]]]]
"""The logits on each device, and the activations that each device keeps for the backward pass."""
Loss: TypeAlias = Callable[[Replica, list[Tensor], list[Tensor], int], list[tuple[Tensor, Tensor]]]
"""On each device, a part of the mean loss over labels, and its gradient by the logits there."""
Backward: TypeAlias = Callable[
    [Replica, Sequence[Tensor], Sequence[list[Tensor]], Sequence[Kept]], None
]
"""Backpropagates the gradients of the logits; adds parameters' gradients to `grads`."""


def local_loss(
    replica: Replica, logits: list[Tensor], y: list[Tensor], count: int
) -> list[tuple[Tensor, Tensor]]:
    """Where each device has all logits of its examples."""
    ops = replica.ops
    function = ops.partial(ops.loss_and_grad, replica.net.loss)
    return ops.on_each_device(function, logits, y, count=count)


def over_microbatches(
    replica: Replica,
    X: Array,
    y: Array,
    count: int,
    forward: Forward,
    backward: Backward,
    loss: Loss = local_loss,
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, and the gradient, on each device of the group."""
    plan, group = replica.plan, replica.group
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    for number, shards in enumerate(plan.shards_of(len(X))):
        X_here, y_here = (replica.place(values, shards) for values in (X, y))
        with group.event("forward", number):
            logits, kept = forward(replica, X_here)
            for here, values in zip(activations, kept, strict=True):
                here[number] = values
            parts = loss(replica, logits, y_here, count)
        losses += [part for part, _ in parts]
        with group.event("backward", number):
            kept = [here.pop(number) for here in activations]
            backward(replica, [grad for _, grad in parts], kept, grads)
    sum_shared(replica, grads)
    return losses, grads


def sum_shared(replica: Replica, grads: Sequence[Kept]) -> None:
    """Adds up the gradients of tensors that all devices have, each from its tokens or examples."""
    if names := replica.plan.shared:
        allreduce_in_place(replica.ops, grads, "gradients", replica.group, names)
