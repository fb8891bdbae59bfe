"""Sequence parallelism: as tensor parallelism, but a device has the states of some tokens.

Between two pairs of layers, tensor parallelism computes the same norms and residuals on each
device. Here each token's are on one device (Korthikanti et al., 2022). Before a product, devices
gather all tokens; after it, each adds up the partial sums of its own: together as much as an
all-reduce sends. A norm has seen only its device's tokens, so its gradient is summed over devices
in the end.
"""

from functools import partial

from common.base.arrays import Array
from common.parallel.ledger import Kept
from frameworks.strategies import tensor
from frameworks.strategies.collectives import all_gather, allreduce, reduce_scatter
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica, over_microbatches

TOKENS = 1
"""The axis of tokens."""


def gather(replica: Replica, values: list[Tensor], kind: str) -> list[Tensor]:
    """All tokens on each device."""
    ops = replica.ops
    gathered = all_gather(ops, values, kind, replica.group)
    return [ops.join(parts, TOKENS) for parts in gathered]


def add(replica: Replica, partial: list[Tensor], kind: str) -> list[Tensor]:
    """The sum of devices' partial sums, of its own tokens on each."""
    ops, sizes = replica.ops, replica.plan.tokens
    parts = [ops.cut(values, sizes, TOKENS) for values in partial]
    return reduce_scatter(ops, parts, kind, replica.group)


forward = partial(tensor.forward, gather=gather, add=add)
backward = partial(tensor.backward, gather=gather, add=add)
predict = partial(tensor.predict, forward=forward)


def loss_and_grads(
    replica: Replica, X: Array, y: Array, count: int
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, on the first device, and all gradients."""
    how = forward, backward, tensor.vocabulary_loss
    losses, grads = over_microbatches(replica, X, y, count, *how)
    local = [{name: kept[name] for name in replica.plan.shared} for kept in grads]
    sums = allreduce(replica.ops, local, "gradients", replica.group)
    for kept, total in zip(grads, sums, strict=True):
        kept.update(total)
    return losses[:: len(grads)], grads
