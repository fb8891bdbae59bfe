"""A pipeline: each device has some consecutive layers, and hands on what they make.

In the book's words: network partitioning. Microbatches follow each other through the devices, so
that all of them have something to do.
"""

from collections.abc import Mapping, Sequence

from tensorflow import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.pipelines import Pass
from common.parallel.plans import Plan
from frameworks.tensorflow.strategies.layers import add, backward, forward, loss_and_gradient
from frameworks.tensorflow.strategies.moves import place, send


def predict(
    X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on the last device: one stage after the other."""
    Y = place(X, group.devices[0])
    for stage, names in enumerate(plan.stages):
        Y, _ = forward(
            names, params[stage], send(Y, max(0, stage - 1), stage, "activations", group)
        )
    return [Y]


def loss_and_grads(
    X: Array, y: Array, params: Sequence[Kept], examples: int, plan: Plan, group: Group
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, on the last device, and each stage's gradient."""
    last = len(params) - 1
    microbatches = plan.microbatches_of(len(X))
    losses: list[Tensor] = []
    grads, kept = group.kept("gradients"), group.kept("activations")
    arrived: dict[Pass, Tensor] = {}
    for one in plan.passes(len(microbatches)):  # in an order in which each finds what it needs
        stage, number, rows = one.stage, one.microbatch, microbatches[one.microbatch]
        names, own = plan.stages[stage], params[stage]
        if one.forward:
            given = arrived.pop(one) if stage else place(X[rows], group.devices[0])
            with group.event("forward", number, stage):
                Y, kept[stage][number] = forward(names, own, given)
            if stage < last:
                following = one._replace(stage=stage + 1)
                arrived[following] = send(Y, stage, stage + 1, "activations", group)
            else:
                target = place(y[rows], group.devices[last])
                part, arrived[one._replace(forward=False)] = loss_and_gradient(Y, target, examples)
                losses.append(part)
        else:
            with group.event("backward", number, stage):
                grad, found = backward(names, own, kept[stage].pop(number), arrived.pop(one))
                add(grads[stage], found)
            if stage:
                before = one._replace(stage=stage - 1)
                arrived[before] = send(grad, stage, stage - 1, "gradients", group)
    return losses, grads
