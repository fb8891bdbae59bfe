"""Expert parallelism: each device has some experts of a layer, and a shard of the examples.

Devices send tokens to those that have their experts, and get back what these made of them: an
all-to-all there and one back, forward and backward (Lepikhin et al., 2021). The gradients of
experts are whole where they are; all others are summed, as in data parallelism. Only the auxiliary
loss is no sum over devices: how many tokens choose an expert is counted over the whole minibatch.
"""

from collections.abc import Sequence

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.shards import shard_bounds
from frameworks.strategies import mixture
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.mixture import back, call
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica, local_loss
from frameworks.strategies.tensor import keep, taken

AT_ONCE = 64
"""Examples that are predicted at once: where no token is dropped, routes grow with their square."""


def forward(
    replica: Replica, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[list[Tensor]], list[Params]]:
    """The logits on each device, the activations it keeps, and by layer the load of experts."""
    each = replica.ops.on_each_device
    kept: list[list[Tensor]] = [[] for _ in X]
    loads: list[Params] = [{} for _ in X]
    for name in replica.plan.layers:
        keep(kept, X)
        if name in replica.plan.mixtures:
            X, local = mixture.forward(replica, name, X, slots, kept)
            for here, load in zip(loads, local, strict=True):
                here[name] = load
        else:
            X = each(*call(replica, "layer", name, X))
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
    losses: list[Tensor] = []
    for name in replica.plan.layers[::-1]:
        if name in replica.plan.mixtures:
            balance = [here[name] for here in loads], scale
            output_grads, parts = mixture.backward(
                replica, name, output_grads, kept, grads, slots, balance
            )
            losses += parts
        else:
            layer = call(replica, "layer", name, taken(kept))
            output_grads, _ = back(replica, *layer, output_grads, grads)
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
