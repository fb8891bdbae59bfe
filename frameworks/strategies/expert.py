"""Expert parallelism: each device has some experts of a layer, and a shard of the examples.

Devices send tokens to those that have their experts, and get back what these made of them: an
all-to-all there and one back, forward and backward (Lepikhin et al., 2021). The gradients of
experts are whole where they are; all others are summed, as in data parallelism. Only the auxiliary
loss is no sum over devices: how many tokens choose an expert is counted over the whole minibatch.
"""

from collections.abc import Sequence
from typing import Any, Final

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.shards import shard_bounds
from frameworks.strategies.collectives import all_to_all, allreduce
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica, local_loss
from frameworks.strategies.tensor import keep, taken

EXPERTS, SLOTS = 0, 1
"""The axes of what experts take and make."""

AT_ONCE = 64
"""Examples that are predicted at once: where no token is dropped, routes grow with their square."""

TAKES: Final = {
    "layer": (".",),
    "probabilities": (".norm.", ".router."),
    "dispatch": (".norm.",),
    "experts": (".up.", ".down."),
    "combine": (),
}
"""How the names of the parameters go on, after the layer's, that functions of the net take."""


def forward(
    replica: Replica, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[list[Tensor]], list[Params]]:
    """The logits on each device, the activations it keeps, and by layer the load of experts."""
    ops, each, owned = replica.ops, replica.ops.on_each_device, replica.plan.owned
    kept: list[list[Tensor]] = [[] for _ in X]
    loads: list[Params] = [{} for _ in X]
    for name in replica.plan.layers:
        keep(kept, X)
        if name not in replica.plan.mixtures:
            X = each(*call(replica, "layer", name, X))
            continue
        probabilities, chosen, routes = routed(replica, name, X, slots)
        for here, load in zip(loads, each(replica.net.load, chosen), strict=True):
            here[name] = load
        sent = each(*call(replica, "dispatch", name, X, routes=routes))
        received = exchange(replica, sent, owned, EXPERTS, "activations")
        made = each(*call(replica, "experts", name, received))
        outputs = exchange(replica, made, slots, SLOTS, "activations")
        keep(kept, received)
        keep(kept, outputs)
        combine = call(replica, "combine", name, probabilities, routes=routes, outputs=outputs)
        X = each(ops.add, X, each(*combine))
    return X, kept, loads


def backward(
    replica: Replica,
    output_grads: list[Tensor],
    kept: Sequence[list[Tensor]],
    grads: Sequence[Kept],
    slots: Sequence[int],
    loads: Sequence[Params],
    scale: float,
) -> list[Tensor]:
    """Backpropagates the gradients of the logits and of the auxiliary loss; returns the latter."""
    ops, each, owned = replica.ops, replica.ops.on_each_device, replica.plan.owned
    losses: list[Tensor] = []
    for name in replica.plan.layers[::-1]:
        if name not in replica.plan.mixtures:
            layer = call(replica, "layer", name, taken(kept))
            output_grads, _ = back(replica, *layer, output_grads, grads)
            continue
        outputs, received, X = taken(kept), taken(kept), taken(kept)
        probabilities, _, routes = routed(replica, name, X, slots)
        combine = call(replica, "combine", name, probabilities, routes=routes, outputs=outputs)
        to_router, further = back(replica, *combine, output_grads, grads)
        made = [here["outputs"] for here in further]
        made = exchange(replica, made, owned, EXPERTS, "gradients")
        made, _ = back(replica, *call(replica, "experts", name, received), made, grads)
        sent = exchange(replica, made, slots, SLOTS, "gradients")
        balance, load = replica.net.balance_loss_and_grad, [here[name] for here in loads]
        parts = each(balance, probabilities, load, scale=scale)
        losses += [loss for loss, _ in parts]
        to_router = each(ops.add, to_router, [grad for _, grad in parts])
        router = call(replica, "probabilities", name, X)
        to_router, _ = back(replica, *router, to_router, grads)
        dispatch = call(replica, "dispatch", name, X, routes=routes)
        sent, _ = back(replica, *dispatch, sent, grads)
        output_grads = each(ops.add, output_grads, each(ops.add, to_router, sent))
    return losses


def loss_and_grads_of_rows(
    minibatches: Sequence[tuple[Replica, Array, Array, int]], columns: Sequence[Group]
) -> list[tuple[list[Tensor], list[Kept]]]:
    """Of each row's examples and labels, parts of the loss, and gradients on its devices."""
    plan, loads, begun = minibatches[0][0].plan, dict[int, Params](), []
    for replica, X, y, count in minibatches:
        group, activations = replica.group, replica.group.kept("activations")
        shards, slots = plan.shards_of(len(X))[0], plan.slots_of(len(X))
        with group.event("forward", 0):
            logits, kept, local = forward(replica, replica.place(X, shards), slots)
            for here, values in zip(activations, kept, strict=True):
                here[0] = values
            parts = local_loss(replica, logits, replica.place(y, shards), count)
        sums = allreduce(replica.ops, local, "activations", group)
        loads |= zip(group.numbers, sums, strict=True)
        begun.append((replica, parts, activations, slots))
    for column in columns:
        local = [loads[number] for number in column.numbers]
        sums = allreduce(replica.ops, local, "activations", column)
        loads |= zip(column.numbers, sums, strict=True)
    tokens = plan.positions["head"] * sum(len(X) for _, X, _, _ in minibatches)
    scale = plan.experts.balance * plan.experts.count / (plan.experts.top_k * tokens**2)
    results = []
    for replica, parts, activations, slots in begun:
        group, grads = replica.group, replica.group.kept("gradients")
        with group.event("backward", 0):
            kept, local = [here.pop(0) for here in activations], [loads[i] for i in group.numbers]
            loss_grads = [grad for _, grad in parts]
            losses = backward(replica, loss_grads, kept, grads, slots, local, scale)
        shared = [{name: here[name] for name in plan.shared} for here in grads]
        sums = allreduce(replica.ops, shared, "gradients", group)
        for here, total in zip(grads, sums, strict=True):
            here.update(total)
        results.append(([*(loss for loss, _ in parts), *losses], grads))
    return results


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch, of which no expert drops a token: of one part after the other."""
    results: list[list[Tensor]] = []
    for part in (X[first : first + AT_ONCE] for first in range(0, len(X), AT_ONCE)):
        shards = [slice(*bounds) for bounds in shard_bounds(len(part), replica.plan.devices)]
        placed = replica.place(part, shards)
        slots = [max(1, here.shape[0] * here.shape[1]) for here in placed]
        results += [[logits] for logits in forward(replica, placed, slots)[0]]
    return results


def routed(
    replica: Replica, name: str, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The router's probabilities for each token, the experts chosen, and the routes to them."""
    each, choices = replica.ops.on_each_device, replica.net.choices
    probabilities = each(*call(replica, "probabilities", name, X))
    chosen = each(replica.ops.partial(choices, replica.plan.experts.top_k), probabilities)
    return probabilities, chosen, each(replica.net.routes, slots, chosen)


def exchange(
    replica: Replica, values: list[Tensor], sizes: Sequence[int], axis: int, kind: str
) -> list[Tensor]:
    """An all-to-all of parts along one of these axes, which are joined along the other."""
    parts = [replica.ops.cut(here, sizes, axis) for here in values]
    received = all_to_all(replica.ops, parts, kind, replica.group)
    return [replica.ops.join(here, 1 - axis) for here in received]


def call(
    replica: Replica, what: str, name: str, X: list[Tensor], **tensors: list[Tensor]
) -> tuple[Any, list[Tensor], list[Params]]:
    """A function of the net for a layer, its inputs, and on each device the tensors it takes."""
    function = getattr(replica.net, what)
    begins = tuple(f"{name}{end}" for end in TAKES[what])
    local = [{x: here[x] for x in here if x.startswith(begins)} for here in replica.params]
    for device, here in enumerate(local):
        here |= {key: values[device] for key, values in tensors.items()}
    return function if what == "combine" else replica.ops.partial(function, name), X, local


def back(
    replica: Replica,
    function: Any,
    X: list[Tensor],
    local: list[Params],
    output_grads: list[Tensor],
    grads: Sequence[Kept],
) -> tuple[list[Tensor], list[Params]]:
    """The gradients of inputs and of tensors; adds those of parameters to `grads`."""
    vjp = replica.ops.partial(replica.ops.vjp, function)
    results = replica.ops.on_each_device(vjp, X, local, output_grads)
    for total, (_, tensors) in zip(grads, results, strict=True):
        if further := {x: tensors[x] for x in tensors if x in replica.plan.shapes}:
            accumulate(replica.ops, total, further)
    return [grad for grad, _ in results], [tensors for _, tensors in results]
