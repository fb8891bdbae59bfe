"""ZeRO: data parallelism without replicated states (Rajbhandari et al., 2020).

Each device takes a shard of the minibatch, as in the first chapter, and updates a slice of each
parameter. Stage 1 shards the optimizer state, stage 2 also the gradients, stage 3 also the
parameters.
"""

import math
from collections.abc import Sequence

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.ledger import Kept
from common.parallel.shards import shard_bounds, shard_sizes
from frameworks.strategies.collectives import all_gather, reduce_scatter
from frameworks.strategies.layers import accumulate, layer_params
from frameworks.strategies.primitives import Params, Primitives, Tensor
from frameworks.strategies.replica import Replica, over_microbatches


def forward(replica: Replica, X: list[Tensor]) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits of each device's shard, and the inputs of all layers there."""
    ops = replica.ops
    inputs: list[list[Tensor]] = [[] for _ in X]
    for name in replica.plan.layers:
        for kept, X_here in zip(inputs, X, strict=True):
            kept.append(X_here)
        gathered = gathered_params(replica, name)
        X = ops.on_each_device(ops.partial(replica.net.layer, name), X, map(dict, gathered))
        for here in gathered:  # copies, or references to the local parameters
            here.clear()
    return X, inputs


def backward(
    replica: Replica,
    output_grads: Sequence[Tensor],
    inputs: Sequence[list[Tensor]],
    grads: Sequence[Kept],
) -> None:
    """From the gradients of the logits, adds those of the parameters to `grads`."""
    ops, plan = replica.ops, replica.plan
    for name in plan.layers[::-1]:
        X = [kept.pop() for kept in inputs]
        gathered = gathered_params(replica, name)
        function = ops.partial(ops.vjp, ops.partial(replica.net.layer, name))
        results = ops.on_each_device(function, X, map(dict, gathered), output_grads)
        for here in gathered:  # copies, or references to the local parameters
            here.clear()
        output_grads = [grad for grad, _ in results]
        if plan.strategy == "zero1":
            for total, (_, layer_grads) in zip(grads, results, strict=True):
                accumulate(ops, total, layer_grads)
        else:
            whole = replica.group.kept("gradients")
            for here, (_, layer_grads) in zip(whole, results, strict=True):
                here.update(layer_grads)
            scatter(replica, whole, grads)


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch; each device has those of its shard."""
    shards = [slice(*bounds) for bounds in shard_bounds(len(X), replica.plan.devices)]
    return [[logits] for logits in forward(replica, replica.place(X, shards))[0]]


def loss_and_grads(
    replica: Replica, X: Array, y: Array, count: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, and the gradient of each device's slices."""
    losses, grads = over_microbatches(replica, X, y, count, forward, backward)
    if replica.plan.strategy != "zero1":
        return losses, grads
    slices = replica.group.kept("gradients")
    scatter(replica, grads, slices)
    return losses, slices


def gathered_params(replica: Replica, name: str) -> Sequence[Kept | Params]:
    """The whole parameters of a layer on each device, to be cleared after use."""
    plan, group = replica.plan, replica.group
    local = [layer_params(name, params) for params in replica.params]
    if plan.strategy != "zero3":
        return local
    gathered = group.kept("weights")
    for here, params in zip(gathered, gather(local, replica), strict=True):
        here.update(params)
    return gathered


def scatter(replica: Replica, grads: Sequence[Kept], slices: Sequence[Kept]) -> None:
    """Adds each device's slices of the summed gradients to `slices`, and clears `grads`."""
    local = [split(replica.ops, dict(kept), replica.plan.devices) for kept in grads]
    scattered = reduce_scatter(replica.ops, local, "gradients", replica.group)
    for here, parts in zip(slices, scattered, strict=True):
        accumulate(replica.ops, here, parts)
    for kept in grads:
        kept.clear()


def owned_slices(replica: Replica) -> list[Params]:
    """The slices that each device updates, in stages 1 and 2: cut out of the whole parameters."""
    ops, devices = replica.ops, replica.plan.devices
    return [split(ops, dict(kept), devices)[i] for i, kept in enumerate(replica.params)]


def gather(slices: Sequence[Params], replica: Replica) -> list[Params]:
    """The whole parameters on each device, from the slices of all of them."""
    gathered = all_gather(replica.ops, slices, "weights", replica.group)
    return [concat(replica.ops, parts, replica.plan.shapes) for parts in gathered]


def split(ops: Primitives, tensors: Params, devices: int) -> list[Params]:
    """The slices of flattened tensors, one for each device; sizes differ by at most one."""
    slices: list[Params] = [{} for _ in range(devices)]
    for name, tensor in tensors.items():
        sizes = shard_sizes(math.prod(tensor.shape), devices)
        parts = ops.cut(ops.reshape(tensor, (-1,)), sizes, 0)
        for here, part in zip(slices, parts, strict=True):
            here[name] = part
    return slices


def concat(ops: Primitives, slices: Sequence[Params], shapes: Shapes) -> Params:
    """The tensors of these shapes: the inverse of `split`."""
    whole = {name: ops.join([part[name] for part in slices], 0) for name in slices[0]}
    return {name: ops.reshape(vector, shapes[name]) for name, vector in whole.items()}
