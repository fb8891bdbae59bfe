"""ZeRO: data parallelism that cuts what all devices would keep (Rajbhandari et al., 2020).

Each device takes a shard of the minibatch, as in the first chapter, and updates a slice of the
weights. So it keeps the momentum of this slice alone (1), its gradient too (2), its weights (3).
"""

from collections.abc import Mapping, MutableMapping, Sequence

from tensorflow import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from common.parallel.shards import shard_bounds
from frameworks.tensorflow.strategies.layers import add, layer, loss_and_gradient, of_layer
from frameworks.tensorflow.strategies.moves import (
    all_gather,
    on_each_device,
    partial,
    place,
    reduce_scatter,
    vjp,
)


def forward(
    given: list[Tensor], params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits of each device's shard, and the inputs of all layers there."""
    inputs: list[list[Tensor]] = [[] for _ in params]
    for name in plan.layers:
        for own, X in zip(inputs, given, strict=True):
            own.append(X)
        weights = whole(name, params, plan, group)
        given = on_each_device(partial(layer, name), given, map(dict, weights))
        for each in weights:  # they have been gathered, or are but names of those that are kept
            each.clear()
    return given, inputs


def backward(
    back: Sequence[Tensor],
    inputs: Sequence[list[Tensor]],
    params: Sequence[Kept],
    grads: Sequence[Kept],
    plan: Plan,
    group: Group,
) -> None:
    """From the gradients of the logits, adds those of the weights to `grads`."""
    for name in plan.layers[::-1]:
        given = [own.pop() for own in inputs]
        weights = whole(name, params, plan, group)
        results = on_each_device(
            partial(vjp, partial(layer, name)), given, map(dict, weights), back
        )
        for each in weights:  # they have been gathered, or are but names of those that are kept
            each.clear()
        back = [grad for grad, _ in results]
        if plan.strategy == "zero1":
            for total, (_, found) in zip(grads, results, strict=True):
                add(total, found)
        else:
            layers = group.kept("gradients")
            for own, (_, found) in zip(layers, results, strict=True):
                own.update(found)
            scatter(layers, grads, group)


def predict(
    X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on each device those of its shard."""
    rows = [slice(*each) for each in shard_bounds(len(X), plan.devices)]
    return forward(placed(X, rows, group), params, plan, group)[0]


def loss_and_grads(
    X: Array, y: Array, params: Sequence[Kept], examples: int, plan: Plan, group: Group
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, and the gradient of each device's slices."""
    losses: list[Tensor] = []
    grads, kept = group.kept("gradients"), group.kept("activations")
    for number, rows in enumerate(plan.shards_of(len(X))):
        with group.event("forward", number):
            logits, inputs = forward(placed(X, rows, group), params, plan, group)
            for own, values in zip(kept, inputs, strict=True):
                own[number] = values
            targets = placed(y, rows, group)
            parts = on_each_device(loss_and_gradient, logits, targets, examples=examples)
        losses += [part for part, _ in parts]
        with group.event("backward", number):
            waiting = [own.pop(number) for own in kept]
            backward([grad for _, grad in parts], waiting, params, grads, plan, group)
    if plan.strategy != "zero1":
        return losses, grads
    slices = group.kept("gradients")
    scatter(grads, slices, group)
    return losses, slices


def placed(values: Array, rows: Sequence[slice], group: Group) -> list[Tensor]:
    """Each device's examples."""
    return [place(values[own], device) for own, device in zip(rows, group.devices, strict=True)]


def whole(
    name: str, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> Sequence[MutableMapping[str, Tensor]]:
    """The whole weights of a layer, on each device: to be used and let go."""
    own = [of_layer(name, each) for each in params]
    if plan.strategy != "zero3":
        return own
    found = group.kept("weights")
    for device, tensors in zip(found, all_gather(own, plan.shapes, "weights", group), strict=True):
        device.update(tensors)
    return found


def scatter(grads: Sequence[Kept], slices: Sequence[Kept], group: Group) -> None:
    """Sums all devices' gradients, adds to each device's slices, and lets the whole ones go."""
    found = reduce_scatter([dict(each) for each in grads], "gradients", group)
    for own, parts in zip(slices, found, strict=True):
        add(own, parts)
    for each in grads:
        each.clear()
