"""Expert parallelism: each device has some experts of a layer, and a shard of the examples.

Devices send tokens to those that have their experts, and get back what these made of them, forward
and backward: all-to-alls (Lepikhin et al., 2021). A group's gradients of experts are whole
where they are, others are summed. The auxiliary loss counts the choices of the whole minibatch.
"""

from collections.abc import Iterator, Sequence

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from frameworks.strategies.axes import all_to_all
from frameworks.strategies.collectives import allreduce_in_place
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica, local_loss, sum_shared
from frameworks.strategies.tensor import back, call, keep, taken

TO_EXPERTS, TO_TOKENS = (0, 1), (1, 0)
"""The axes of what experts take and make (E, slots, h): which is cut, and which is joined."""


def forward(
    replica: Replica, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[list[Tensor]], list[Params]]:
    """The logits on each device, the activations it keeps, and by layer the load of experts."""
    each, net, owned = replica.ops.on_each_device, replica.net, replica.plan.owned
    kept: list[list[Tensor]] = [[] for _ in X]
    loads: list[Params] = [{} for _ in X]
    for name in replica.plan.layers:
        keep(kept, X)
        if name not in replica.plan.mixtures:
            X = call(replica, (name,), X, "layer")
            continue
        states, probabilities, chosen, routes = routed(replica, name, X, slots)
        for here, load in zip(loads, each(net.load, chosen), strict=True):
            here[name] = load
        sent = each(net.dispatch, chosen, routes, states)
        received = all_to_all(replica, sent, owned, TO_EXPERTS, "activations")
        made = call(replica, (name,), received, "experts")
        outputs = all_to_all(replica, made, slots, TO_TOKENS, "activations")
        keep(kept, received)
        keep(kept, outputs)
        X = each(replica.ops.add, X, each(net.combine, probabilities, routes, outputs))
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
    add, each, net = replica.ops.add, replica.ops.on_each_device, replica.net
    losses: list[Tensor] = []
    for name in replica.plan.layers[::-1]:
        if name not in replica.plan.mixtures:
            output_grads = back(replica, (name,), taken(kept), output_grads, grads, "layer")
            continue
        outputs, received, X = taken(kept), taken(kept), taken(kept)
        states, probabilities, chosen, routes = routed(replica, name, X, slots)
        # The gradient of `combine` is a `dispatch`, and the other way round.
        sent = each(net.dispatch, probabilities, routes, output_grads)
        made = all_to_all(replica, sent, replica.plan.owned, TO_EXPERTS, "gradients")
        made = back(replica, (name,), received, made, grads, "experts")
        sent = all_to_all(replica, made, slots, TO_TOKENS, "gradients")
        to_states = each(net.combine, chosen, routes, sent)
        to_router = each(net.combine_backward, routes, outputs, output_grads)
        balances = each(net.balance, probabilities, [here[name] for here in loads], scale=scale)
        losses += [loss for loss, _ in balances]
        to_router = each(add, to_router, [grad for _, grad in balances])
        to_router = back(replica, (name,), states, to_router, grads, "probabilities")
        total = back(replica, (name,), X, each(add, to_router, to_states), grads, "enter")
        output_grads = each(add, output_grads, total)
    return losses


def routed(
    replica: Replica, name: str, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """Each token's state, the probabilities of experts, which are chosen, and the routes there."""
    each, top_k = replica.ops.on_each_device, replica.plan.experts.top_k
    states = call(replica, (name,), X, "enter")
    probabilities = call(replica, (name,), states, "probabilities")
    chosen = each(replica.ops.partial(replica.net.choices, top_k), probabilities)
    return states, probabilities, chosen, each(replica.net.routes, slots, chosen)


def loss_and_grads_of_rows(
    minibatches: Sequence[tuple[Replica, Array, Array, int]], columns: Sequence[Group]
) -> Iterator[tuple[list[Tensor], list[Kept]]]:
    """Of each row's examples and labels, parts of the loss, and gradients on its devices."""
    plan, loads, begun = minibatches[0][0].plan, list[Params](), []
    for replica, X, y, count in minibatches:
        group, activations = replica.group, replica.group.kept("activations")
        shards, slots = plan.shards_of(len(X))[0], plan.slots_of(len(X))
        with group.event("forward", 0):
            logits, kept, local = forward(replica, replica.place(X, shards), slots)
            for here, values in zip(activations, kept, strict=True):
                here[0] = values
            parts = local_loss(replica, logits, replica.place(y, shards), count)
        allreduce_in_place(replica.ops, local, "activations", group)
        loads += local
        begun.append((replica, parts, activations, slots))
    for column in columns:
        local = [loads[number] for number in column.numbers]
        allreduce_in_place(replica.ops, local, "activations", column)
    tokens = plan.positions["head"] * sum(len(X) for _, X, _, _ in minibatches)
    scale = plan.experts.balance * plan.experts.count / (plan.experts.top_k * tokens**2)
    for replica, parts, activations, slots in begun:
        group, grads = replica.group, replica.group.kept("gradients")
        with group.event("backward", 0):
            kept, local = [here.pop(0) for here in activations], [loads[i] for i in group.numbers]
            losses = backward(replica, [g for _, g in parts], kept, grads, slots, local, scale)
        sum_shared(replica, grads)
        yield [*(loss for loss, _ in parts), *losses], grads


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch, of which no expert drops a token: of one part after the other."""
    results: list[list[Tensor]] = []
    for first in range(0, len(X), 64):  # routes grow with the square of the examples
        part = X[first : first + 64]
        placed = replica.place(part, replica.plan.shards_of(len(part))[0])
        slots = [max(1, here.shape[0] * here.shape[1]) for here in placed]
        results += [[logits] for logits in forward(replica, placed, slots)[0]]
    return results
