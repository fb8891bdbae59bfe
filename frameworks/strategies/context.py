"""Context parallelism: each device has all weights, and some tokens of each sequence.

Only attention needs the tokens of other devices: `attention.py` has three ways to exchange them.
All else is computed token by token, and gradients of weights are summed, as in data parallelism.
"""

from collections.abc import Sequence

from common.base.arrays import Array
from common.parallel.ledger import Kept
from frameworks.strategies.attention import EXCHANGES
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica, over_microbatches
from frameworks.strategies.tensor import back, call, keep, taken


def forward(replica: Replica, X: list[Tensor]) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits of each device's tokens, and the activations it keeps."""
    kept: list[list[Tensor]] = [[] for _ in X]
    for name in replica.plan.layers:
        keep(kept, X)
        if name.endswith("attention"):
            qkv = call(replica, (name,), X, "enter", "project")
            heads, found = EXCHANGES[replica.plan.exchange][0](replica, qkv)
            keep(kept, heads)
            keep(kept, found)
            Y = call(replica, (name,), heads, "unite", "finish")
            X = replica.ops.on_each_device(replica.ops.add, X, Y)
        else:
            X = call(replica, (name,), X, "layer")
    return X, kept


def backward(
    replica: Replica,
    output_grads: Sequence[Tensor],
    kept: Sequence[list[Tensor]],
    grads: Sequence[Kept],
) -> None:
    """Backpropagates the gradients of the logits; adds parameters' gradients to `grads`."""
    ops = replica.ops
    for name in replica.plan.layers[::-1]:
        if name.endswith("attention"):
            found, heads, X = taken(kept), taken(kept), taken(kept)
            partial = back(replica, (name,), heads, output_grads, grads, "unite", "finish")
            qkv = call(replica, (name,), X, "enter", "project")
            _, exchange_back = EXCHANGES[replica.plan.exchange]
            partial = exchange_back(replica, qkv, heads, found, partial)
            partial = back(replica, (name,), X, partial, grads, "enter", "project")
            output_grads = ops.on_each_device(ops.add, output_grads, partial)
        else:
            output_grads = back(replica, (name,), taken(kept), output_grads, grads, "layer")


def predict(replica: Replica, X: Array) -> list[list[Tensor]]:
    """The logits of a batch: each device has those of its tokens."""
    return [forward(replica, replica.place(X))[0]]


def loss_and_grads(
    replica: Replica, X: Array, y: Array, count: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, and the gradient, on each device of the group."""
    return over_microbatches(replica, X, y, count, forward, backward)
