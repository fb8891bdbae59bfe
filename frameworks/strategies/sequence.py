"""Sequence parallelism: as tensor parallelism, but a device has the states of some tokens.

Between two pairs of layers, tensor parallelism computes the same norms and residuals on each
device. Here each token's are on one device (Korthikanti et al., 2022). Before a product, devices
gather all tokens; after it, each adds up the partial sums of its own: together as much as an
all-reduce sends. A norm has seen only its device's tokens, so its gradient is summed over devices
in the end.
"""

from functools import partial

from frameworks.strategies import axes, tensor
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica

TOKENS = 1
"""The axis of tokens."""


def gather(replica: Replica, values: list[Tensor], kind: str) -> list[Tensor]:
    """All tokens on each device."""
    return axes.all_gather(replica, values, TOKENS, kind)


def add(replica: Replica, partial: list[Tensor], kind: str) -> list[Tensor]:
    """The sum of devices' partial sums, of its own tokens on each."""
    return axes.reduce_scatter(replica, partial, replica.plan.tokens, TOKENS, kind)


forward = partial(tensor.forward, gather=gather, add=add)
backward = partial(tensor.backward, gather=gather, add=add)
predict = partial(tensor.predict, forward=forward)
loss_and_grads = partial(tensor.loss_and_grads, forward=forward, backward=backward)
