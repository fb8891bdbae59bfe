"""Data parallelism on one device of many: gradients accumulate over microbatches."""

from collections.abc import Mapping, Sequence

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Primitives, Tensor


def predict(
    ops: Primitives, X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on the device of the group."""
    return [ops.forward(plan.layers, params[0], ops.place(X, group.devices[0]))[0]]


def loss_and_grads(
    ops: Primitives,
    X: Array,
    y: Array,
    params: Sequence[Kept],
    examples: int,
    plan: Plan,
    group: Group,
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, and the gradient, on the device of the group."""
    losses: list[Tensor] = []
    (grads,), (activations,) = group.kept("gradients"), group.kept("activations")
    for number, rows in enumerate(plan.microbatches_of(len(X))):
        X_here, y_here = (ops.place(values[rows], group.devices[0]) for values in (X, y))
        with group.event("forward", number):
            logits, activations[number] = ops.forward(plan.layers, params[0], X_here)
            loss, grad = ops.loss_and_grad(logits, y_here, examples)
        losses.append(loss)
        with group.event("backward", number):
            inputs = activations.pop(number)
            _, microbatch_grads = ops.backward(plan.layers, params[0], inputs, grad)
            accumulate(ops, grads, microbatch_grads)
    return losses, [grads]
