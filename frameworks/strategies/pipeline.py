"""Pipeline parallelism: each device has a stage of consecutive layers, and sends its output on.

In the book's words: network partitioning. Microbatches follow each other through the stages, so
that all of them have something to do.
"""

from common.base.arrays import Array
from common.parallel.ledger import Kept
from common.parallel.pipelines import Pass
from frameworks.strategies.collectives import send
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch, on the last device: one stage after the other."""
    ops, group = replica.ops, replica.group
    Y = ops.place(X, group.devices[0])
    for stage, names in enumerate(replica.plan.stages):
        Y = send(ops, Y, max(0, stage - 1), stage, "activations", group)
        Y, _ = ops.forward(replica.net.layer, names, replica.params[stage], Y)
    return [[Y]]


def loss_and_grads(
    replica: Replica, X: Array, y: Array, count: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, on the last device, and each stage's gradient."""
    ops, plan, group, params = replica.ops, replica.plan, replica.group, replica.params
    net = replica.net
    last = len(params) - 1
    microbatches = plan.microbatches_of(len(X))
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    received: dict[Pass, Tensor] = {}
    for step in plan.passes(len(microbatches)):  # in an order in which each finds its input
        stage, number, rows = step.stage, step.microbatch, microbatches[step.microbatch]
        names, kept = plan.stages[stage], activations[stage]
        if step.forward:
            X_here = received.pop(step) if stage else ops.place(X[rows], group.devices[0])
            with group.event("forward", number, stage):
                Y, kept[number] = ops.forward(net.layer, names, params[stage], X_here)
            if stage < last:
                following = step._replace(stage=stage + 1)
                received[following] = send(ops, Y, stage, stage + 1, "activations", group)
            else:
                y_here = ops.place(y[rows], group.devices[last])
                loss, grad = ops.loss_and_grad(net.loss, Y, y_here, count)
                received[step._replace(forward=False)] = grad
                losses.append(loss)
        else:
            with group.event("backward", number, stage):
                inputs, grad = kept.pop(number), received.pop(step)
                grad, stage_grads = ops.backward(net.layer, names, params[stage], inputs, grad)
                accumulate(ops, grads[stage], stage_grads)
            if stage:
                preceding = step._replace(stage=stage - 1)
                received[preceding] = send(ops, grad, stage, stage - 1, "gradients", group)
    return losses, grads
