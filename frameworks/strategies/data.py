"""Data parallelism on one device of many: gradients accumulate over microbatches."""

from collections.abc import Sequence

from common.base.arrays import Array
from common.parallel.ledger import Kept
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica, over_microbatches


def forward(replica: Replica, X: list[Tensor]) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits on the device of the group, and the inputs of all layers."""
    ops, net, layers = replica.ops, replica.net, replica.plan.layers
    logits, inputs = ops.forward(net.layer, layers, replica.params[0], X[0])
    return [logits], [inputs]


def backward(
    replica: Replica,
    output_grads: Sequence[Tensor],
    inputs: Sequence[list[Tensor]],
    grads: Sequence[Kept],
) -> None:
    """Backpropagates the gradient of the logits; adds parameters' gradients to `grads`."""
    ops, layers, params = replica.ops, replica.plan.layers, replica.params[0]
    _, microbatch_grads = ops.backward(
        replica.net.layer, layers, params, inputs[0], output_grads[0]
    )
    accumulate(ops, grads[0], microbatch_grads)


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch, on the device of the group."""
    return [forward(replica, replica.place(X))[0]]


def loss_and_grads(
    replica: Replica, X: Array, y: Array, count: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, and the gradient, on the device of the group."""
    return over_microbatches(replica, X, y, count, forward, backward)
