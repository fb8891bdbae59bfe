"""Masks of causal attention between the tokens of a replica's devices."""

import numpy as np

from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica

HIDDEN = -1e30
"""Added to the score of a later token: the exponential of that is 0, and no NaN."""


def masks(replica: Replica, by_heads: bool = False) -> list[Tensor]:
    """`HIDDEN` where a key's token is later than a query's, else 0 (queries, keys), on each device.

    Keys are those of all devices; queries are those of the device, or `by_heads` of all.
    """
    tokens, group = replica.plan.tokens, replica.group
    keys, dtype = np.concatenate(tokens), f"f{group.ledger.itemsize}"
    queries = [keys if by_heads else np.array(local) for local in tokens]
    hidden = [HIDDEN * (keys > local[:, None]).astype(dtype) for local in queries]
    return list(map(replica.ops.place, hidden, group.devices))


def masks_by_hop(replica: Replica) -> list[list[Tensor]]:
    """The same for a device's own keys, and for those that come to it in each hop of a ring."""
    sizes = list(map(len, replica.plan.tokens))
    cut = [replica.ops.cut(mask, sizes, 1) for mask in masks(replica)]
    return [[mask[i - hop] for i, mask in enumerate(cut)] for hop in range(len(cut))]
