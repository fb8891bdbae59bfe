"""Tensor parallelism: the weights of almost every layer are sliced over all devices.

In the book's words: layerwise partitioning. Layers go in pairs (Shoeybi et al., 2019). The first
one is column-parallel: each device computes some output channels. The second one is row-parallel:
it takes just these channels as input, so the devices' partial sums only have to be added: one
all-reduce for two layers.
"""

from collections.abc import Callable, Mapping, Sequence

from common.base.arrays import Array
from common.parallel.ledger import Kept
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.layers import accumulate, layer_params
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica, over_microbatches


def forward(replica: Replica, X: list[Tensor]) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits on each device, and the activations each device keeps for the backward pass."""
    ops, plan, params = replica.ops, replica.plan, replica.params
    kept: list[list[Tensor]] = [[] for _ in params]

    def on_each_device(function: Callable[..., Tensor], name: str) -> list[Tensor]:
        for activations, value in zip(kept, X, strict=True):
            activations.append(value)
        return ops.on_each_device(ops.partial(function, name), X, local_params(name, params))

    for column, row in plan.pairs:
        X = on_each_device(ops.layer, column)
        X = on_each_device(ops.product, row)
        X = allreduce(ops, X, "activations", replica.group)
        X = on_each_device(ops.finish, row)
    for name in plan.unpaired:  # every device has the whole of it
        X = on_each_device(ops.layer, name)
    return X, kept


def backward(
    replica: Replica,
    output_grads: Sequence[Tensor],
    kept: Sequence[list[Tensor]],
    grads: Sequence[Kept],
) -> None:
    """Backpropagates the gradients of the logits; adds those of local slices to `grads`."""
    ops, plan = replica.ops, replica.plan

    def backprop(
        function: Callable[..., Tensor], name: str, output_grads: Sequence[Tensor], kind: str = ""
    ) -> list[Tensor]:
        inputs = [activations.pop() for activations in kept]
        local, vjp = local_params(name, replica.params, kind), ops.partial(function, name)
        results = ops.on_each_device(ops.partial(ops.vjp, vjp), inputs, local, output_grads)
        for total, (_, param_grads) in zip(grads, results, strict=True):
            accumulate(ops, total, param_grads)
        return [grad for grad, _ in results]

    for name in plan.unpaired:
        output_grads = backprop(ops.layer, name, output_grads)
    for column, row in plan.pairs[::-1]:
        output_grads = backprop(ops.finish, row, output_grads, "bias")
        output_grads = backprop(ops.product, row, output_grads, "weight")
        output_grads = backprop(ops.layer, column, output_grads)
        if column != plan.layers[0]:
            # Each device has a partial sum of the gradient of the pair's input.
            output_grads = allreduce(ops, output_grads, "gradients", replica.group)


def predict(replica: Replica, X: Array) -> list[Tensor]:
    """The logits of a batch, on the first device: all have the same."""
    return forward(replica, replica.place(X))[0][:1]


def loss_and_grads(
    replica: Replica, X: Array, y: Array, examples: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, on the first device, and each device's gradient."""
    losses, grads = over_microbatches(replica, X, y, examples, forward, backward)
    return losses[:: len(grads)], grads


def local_params(name: str, params: Sequence[Mapping[str, Tensor]], kind: str = "") -> list[Params]:
    """Each device's parameters of a layer, or its weight or bias only."""
    local = [layer_params(name, device_params) for device_params in params]
    return [{k: tensor for k, tensor in held.items() if k.endswith(kind)} for held in local]
