"""Data parallelism, as one device does its share of it: gradients add up over microbatches."""

from collections.abc import Mapping, Sequence

from tensorflow import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.tensorflow.strategies.layers import add, backward, forward, loss_and_gradient
from frameworks.tensorflow.strategies.moves import place


def predict(
    X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on the device of the group."""
    return [forward(plan.layers, params[0], place(X, group.devices[0]))[0]]


def loss_and_grads(
    X: Array, y: Array, params: Sequence[Kept], examples: int, plan: Plan, group: Group
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, and the gradient, on the device of the group."""
    losses: list[Tensor] = []
    (grads,), (kept,) = group.kept("gradients"), group.kept("activations")
    for number, rows in enumerate(plan.microbatches_of(len(X))):
        X_here, y_here = (place(values[rows], group.devices[0]) for values in (X, y))
        with group.event("forward", number):
            logits, kept[number] = forward(plan.layers, params[0], X_here)
            part, grad = loss_and_gradient(logits, y_here, examples)
        losses.append(part)
        with group.event("backward", number):
            _, found = backward(plan.layers, params[0], kept.pop(number), grad)
            add(grads, found)
    return losses, [grads]
