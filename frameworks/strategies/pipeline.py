"""Pipeline parallelism: each device has a stage of consecutive layers, and sends its output on.

In the book's words: network partitioning. Microbatches follow each other through the stages, so
that all of them have something to do.
"""

from collections.abc import Sequence

from common.base.arrays import Array
from common.parallel.ledger import Kept
from common.parallel.pipelines import Pass
from frameworks.strategies.collectives import send
from frameworks.strategies.layers import accumulate, layer_params
from frameworks.strategies.primitives import Params, Tensor
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
    first, last = group.devices[0], len(params) - 1
    microbatches = plan.microbatches_of(len(X))
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    output_grads = group.kept("gradients")  # of layers, between the halves of a backward pass
    received: dict[tuple[int, int], Tensor] = {}
    for step in plan.passes(len(microbatches)):  # in an order in which each finds its input
        stage, number, kind = step
        rows, names, kept = microbatches[number], plan.stages[stage], activations[stage]
        with group.event(kind, number, stage):
            if kind == "forward":
                X_here = received.pop((stage, number)) if stage else ops.place(X[rows], first)
                Y, kept[number] = ops.forward(net.layer, names, params[stage], X_here)
            elif kind == "backward":
                inputs, grad = kept.pop(number), received.pop((stage, number))
                grad, stage_grads = ops.backward(net.layer, names, params[stage], inputs, grad)
                accumulate(ops, grads[stage], stage_grads)
            elif kind == "input":
                back = input_grads(replica, step, kept[number], received.pop((stage, number)))
                grad, output_grads[stage][number] = back[0], back[-len(names) :]
            else:
                layers = zip(names, kept.pop(number), output_grads[stage].pop(number), strict=True)
                for name, X_here, output_grad in layers:
                    accumulate(ops, grads[stage], half(replica, step, name, X_here, output_grad)[1])
        if kind == "forward" and stage < last:
            received[stage + 1, number] = send(ops, Y, stage, stage + 1, "activations", group)
        elif kind == "forward":
            y_here = ops.place(y[rows], group.devices[last])
            loss, received[last, number] = ops.loss_and_grad(net.loss, Y, y_here, count)
            losses.append(loss)
        elif kind != "weights" and stage:
            received[stage - 1, number] = send(ops, grad, stage, stage - 1, "gradients", group)
    return losses, grads


def input_grads(
    replica: Replica, step: Pass, inputs: Sequence[Tensor], grad: Tensor
) -> list[Tensor]:
    """The gradients of the layers' inputs, but the net's, then of the last output, as given."""
    grads, layers = [grad], [*zip(replica.plan.stages[step.stage], inputs, strict=True)]
    for name, X in reversed(layers[step.stage == 0 :]):
        grads.insert(0, half(replica, step, name, X, grads[0])[0])
    return grads


def half(replica: Replica, step: Pass, name: str, X: Tensor, grad: Tensor) -> tuple[Tensor, Params]:
    """A half of a layer's backward pass: the gradient of only its input, or only its weights."""
    vjp = replica.ops.partial(replica.ops.vjp, replica.ops.partial(replica.net.layer, name))
    return vjp(X, layer_params(name, replica.params[step.stage]), grad, step.kind)
