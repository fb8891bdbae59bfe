"""Tensor parallelism: the weights of almost every layer are sliced over all devices.

In the book's words: layerwise partitioning. Layers go in pairs (Shoeybi et al., 2019). The first
one is column-parallel: each device computes some output channels. The second one is row-parallel:
it takes just these channels as input, so the devices' partial sums only have to be added: one
all-reduce for two layers.
"""

from collections.abc import Callable, Mapping, Sequence

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.layers import accumulate, layer_params
from frameworks.strategies.primitives import Params, Primitives, Tensor


def forward(
    ops: Primitives, X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits on each device, and the activations each device keeps for the backward pass."""
    inputs = [ops.place(X, device) for device in group.devices]
    kept: list[list[Tensor]] = [[] for _ in params]

    def keep(values: Sequence[Tensor]) -> None:
        for activations, value in zip(kept, values, strict=True):
            activations.append(value)

    for column, row in plan.pairs:
        slices = ops.on_each_device(
            ops.partial(ops.layer, column), inputs, local_params(column, params)
        )
        partial_sums = ops.on_each_device(
            ops.partial(ops.product, row), slices, local_params(row, params)
        )
        sums = allreduce(ops, partial_sums, "activations", group)
        for values in (inputs, slices, sums):
            keep(values)
        inputs = ops.on_each_device(ops.partial(ops.finish, row), sums, local_params(row, params))
    for name in plan.unpaired:  # every device has the whole of it
        keep(inputs)
        inputs = ops.on_each_device(
            ops.partial(ops.layer, name), inputs, local_params(name, params)
        )
    return inputs, kept


def backward(
    ops: Primitives,
    output_grads: Sequence[Tensor],
    kept: Sequence[list[Tensor]],
    params: Sequence[Kept],
    grads: Sequence[Kept],
    plan: Plan,
    group: Group,
) -> None:
    """From the gradients of the logits, adds those of each device's slices to `grads`."""

    def backprop(
        function: Callable[..., Tensor], name: str, output_grads: Sequence[Tensor], kind: str = ""
    ) -> list[Tensor]:
        here = local_params(name, params, kind)
        return backpropagate(ops, ops.partial(function, name), kept, here, output_grads, grads)

    for name in plan.unpaired:
        output_grads = backprop(ops.layer, name, output_grads)
    for column, row in plan.pairs[::-1]:
        output_grads = backprop(ops.finish, row, output_grads, "bias")
        output_grads = backprop(ops.product, row, output_grads, "weight")
        output_grads = backprop(ops.layer, column, output_grads)
        if column != plan.layers[0]:
            # Each device has its own slice's part of the gradient of the pair's input.
            output_grads = allreduce(ops, output_grads, "gradients", group)


def predict(
    ops: Primitives, X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on the first device: all have the same."""
    return forward(ops, X, params, plan, group)[0][:1]


def loss_and_grads(
    ops: Primitives,
    X: Array,
    y: Array,
    params: Sequence[Kept],
    examples: int,
    plan: Plan,
    group: Group,
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, on the first device, and each device's gradient."""
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    for number, rows in enumerate(plan.microbatches_of(len(X))):
        with group.event("forward", number):
            logits, kept = forward(ops, X[rows], params, plan, group)
            for here, values in zip(activations, kept, strict=True):
                here[number] = values
            y_here = [ops.place(y[rows], device) for device in group.devices]
            parts = ops.on_each_device(ops.loss_and_grad, logits, y_here, examples=examples)
        losses.append(parts[0][0])
        with group.event("backward", number):
            kept = [here.pop(number) for here in activations]
            backward(ops, [grad for _, grad in parts], kept, params, grads, plan, group)
    return losses, grads


def local_params(name: str, params: Sequence[Mapping[str, Tensor]], kind: str = "") -> list[Params]:
    """Each device's parameters of a layer, or its weight or bias alone."""
    found = [layer_params(name, each) for each in params]
    return [{key: each[key] for key in each if key.endswith(kind)} for each in found]


def backpropagate(
    ops: Primitives,
    function: Callable[[Tensor, Params], Tensor],
    kept: Sequence[list[Tensor]],
    params: Sequence[Params],
    output_grads: Sequence[Tensor],
    grads: Sequence[Kept],
) -> list[Tensor]:
    """The gradient of each device's last kept activation; adds those of parameters to `grads`."""
    inputs = [activations.pop() for activations in kept]
    results = ops.on_each_device(ops.partial(ops.vjp, function), inputs, params, output_grads)
    for total, (_, param_grads) in zip(grads, results, strict=True):
        accumulate(ops, total, param_grads)
    return [grad for grad, _ in results]
