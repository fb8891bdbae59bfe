"""A replica of the model on the devices of a group, and gradients accumulated over microbatches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.strategies.primitives import Primitives, Tensor


@dataclass(frozen=True)
class Replica:
    """The devices of a model-parallel group, the plan of a strategy, and the parameters there."""

    ops: Primitives
    plan: Plan
    group: Group
    params: Sequence[Kept]

    def place(self, values: Array, shards: Sequence[slice] = ()) -> list[Tensor]:
        """A copy of the values on each device, or of its shard of them."""
        rows = shards or [slice(None)] * len(self.group.devices)
        pairs = zip(rows, self.group.devices, strict=True)
        return [self.ops.place(values[here], device) for here, device in pairs]


Forward: TypeAlias = Callable[[Replica, list[Tensor]], tuple[list[Tensor], list[list[Tensor]]]]
"""The logits on each device, and the activations that each device keeps for the backward pass."""
Backward: TypeAlias = Callable[
    [Replica, Sequence[Tensor], Sequence[list[Tensor]], Sequence[Kept]], None
]
"""Backpropagates the gradients of the logits; adds parameters' gradients to `grads`."""


def over_microbatches(
    replica: Replica, X: Array, y: Array, examples: int, forward: Forward, backward: Backward
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, and the gradient, on each device of the group."""
    ops, plan, group = replica.ops, replica.plan, replica.group
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    for number, shards in enumerate(plan.shards_of(len(X))):
        X_here, y_here = (replica.place(values, shards) for values in (X, y))
        with group.event("forward", number):
            logits, kept = forward(replica, X_here)
            for here, values in zip(activations, kept, strict=True):
                here[number] = values
            parts = ops.on_each_device(ops.loss_and_grad, logits, y_here, examples=examples)
        losses += [loss for loss, _ in parts]
        with group.event("backward", number):
            kept = [here.pop(number) for here in activations]
            backward(replica, [grad for _, grad in parts], kept, grads)
    return losses, grads
