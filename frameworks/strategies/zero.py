"""ZeRO: data parallelism that shards what all devices would keep (Rajbhandari et al., 2020).

Each device takes a shard of the minibatch, as in the first chapter, and updates a slice of each
parameter. Stage 1 shards the optimizer state, stage 2 also the gradients, stage 3 also the
parameters.
"""

from collections.abc import Mapping, MutableMapping, Sequence

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from common.parallel.shards import shard_bounds
from frameworks.strategies.collectives import all_gather, reduce_scatter
from frameworks.strategies.layers import accumulate, layer_params
from frameworks.strategies.primitives import Primitives, Tensor


def forward(
    ops: Primitives,
    X: list[Tensor],
    params: Sequence[Mapping[str, Tensor]],
    plan: Plan,
    group: Group,
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits of each device's shard, and the inputs of all layers there."""
    inputs: list[list[Tensor]] = [[] for _ in params]
    for name in plan.layers:
        for kept, X_here in zip(inputs, X, strict=True):
            kept.append(X_here)
        gathered = gathered_params(ops, name, params, plan, group)
        X = ops.on_each_device(ops.partial(ops.layer, name), X, map(dict, gathered))
        for here in gathered:  # copies, or references to the local parameters
            here.clear()
    return X, inputs


def backward(
    ops: Primitives,
    output_grads: Sequence[Tensor],
    inputs: Sequence[list[Tensor]],
    params: Sequence[Kept],
    grads: Sequence[Kept],
    plan: Plan,
    group: Group,
) -> None:
    """From the gradients of the logits, adds those of the parameters to `grads`."""
    for name in plan.layers[::-1]:
        X = [kept.pop() for kept in inputs]
        gathered = gathered_params(ops, name, params, plan, group)
        function = ops.partial(ops.vjp, ops.partial(ops.layer, name))
        results = ops.on_each_device(function, X, map(dict, gathered), output_grads)
        for here in gathered:  # copies, or references to the local parameters
            here.clear()
        output_grads = [grad for grad, _ in results]
        if plan.strategy == "zero1":
            for total, (_, layer_grads) in zip(grads, results, strict=True):
                accumulate(ops, total, layer_grads)
        else:
            whole = group.kept("gradients")
            for here, (_, layer_grads) in zip(whole, results, strict=True):
                here.update(layer_grads)
            scatter(ops, whole, grads, group)


def predict(
    ops: Primitives, X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on each device those of its shard."""
    shards = [slice(*bounds) for bounds in shard_bounds(len(X), plan.devices)]
    return forward(ops, placed(ops, X, shards, group), params, plan, group)[0]


def loss_and_grads(
    ops: Primitives,
    X: Array,
    y: Array,
    params: Sequence[Kept],
    examples: int,
    plan: Plan,
    group: Group,
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, and the gradient of each device's slices."""
    losses: list[Tensor] = []
    grads, activations = group.kept("gradients"), group.kept("activations")
    for number, shards in enumerate(plan.shards_of(len(X))):
        with group.event("forward", number):
            logits, inputs = forward(ops, placed(ops, X, shards, group), params, plan, group)
            for here, values in zip(activations, inputs, strict=True):
                here[number] = values
            y_here = placed(ops, y, shards, group)
            parts = ops.on_each_device(ops.loss_and_grad, logits, y_here, examples=examples)
        losses += [loss for loss, _ in parts]
        with group.event("backward", number):
            inputs = [here.pop(number) for here in activations]
            backward(ops, [grad for _, grad in parts], inputs, params, grads, plan, group)
    if plan.strategy != "zero1":
        return losses, grads
    slices = group.kept("gradients")
    scatter(ops, grads, slices, group)
    return losses, slices


def placed(ops: Primitives, values: Array, shards: Sequence[slice], group: Group) -> list[Tensor]:
    """Each device's shard of the values."""
    return [ops.place(values[rows], dev) for rows, dev in zip(shards, group.devices, strict=True)]


def gathered_params(
    ops: Primitives, name: str, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> Sequence[MutableMapping[str, Tensor]]:
    """The whole parameters of a layer on each device, to be cleared after use."""
    local = [layer_params(name, each) for each in params]
    if plan.strategy != "zero3":
        return local
    gathered = group.kept("weights")
    whole = all_gather(ops, local, plan.shapes, "weights", group)
    for here, tensors in zip(gathered, whole, strict=True):
        here.update(tensors)
    return gathered


def scatter(ops: Primitives, grads: Sequence[Kept], slices: Sequence[Kept], group: Group) -> None:
    """Adds each device's slices of the summed gradients to `slices`, and clears `grads`."""
    scattered = reduce_scatter(ops, [dict(each) for each in grads], "gradients", group)
    for here, parts in zip(slices, scattered, strict=True):
        accumulate(ops, here, parts)
    for each in grads:
        each.clear()
