"""Tokens on the devices of a group: masks, and ways to exchange what belongs to them."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from frameworks.strategies.collectives import all_gather, all_to_all, send
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica

HEADS, TOKENS, NUMBERS = 1, 2, 3
"""The axes of queries, keys and values (n, a, T, 3d)."""

Values: TypeAlias = list[Tensor]
"""A tensor on each device."""


def later(replica: Replica, step: int | None = None, by_heads: bool = False) -> Values:
    """1 where a key's token is later than a query's, else 0, on each device.

    Keys are those of all devices, or those that have passed `step` devices; queries are those of
    the device, or `by_heads` of all.
    """
    tokens, dtype = replica.plan.tokens, f"f{replica.group.ledger.itemsize}"
    everyone = np.concatenate(tokens)
    placed = []
    for i, device in enumerate(replica.group.devices):
        queries = everyone if by_heads else np.array(tokens[i])
        keys = everyone if step is None else np.array(tokens[i - step])
        placed.append(replica.ops.place((keys > queries[:, None]).astype(dtype), device))
    return placed


def passed_on(replica: Replica, values: Values, kind: str) -> Values:
    """What the device before has sent."""
    ops, group, last = replica.ops, replica.group, len(values) - 1
    ends = [((i or last + 1) - 1, i) for i in range(len(values))]
    return [send(ops, values[source], source, target, kind, group) for source, target in ends]


def gathered(replica: Replica, values: Values) -> Values:
    """Those of all tokens."""
    parts = all_gather(replica.ops, values, "activations", replica.group)
    return [replica.ops.join(each, TOKENS) for each in parts]


def to_heads(replica: Replica, values: Values, kind: str) -> Values:
    """Some heads of all tokens, for all heads of some tokens."""
    ops, sizes = replica.ops, [values[0].shape[HEADS] // len(values)] * len(values)
    parts = all_to_all(ops, [ops.cut(x, sizes, HEADS) for x in values], kind, replica.group)
    return [ops.join(each, TOKENS) for each in parts]


def to_tokens(replica: Replica, values: Values, kind: str) -> Values:
    """The inverse of `to_heads`."""
    ops, sizes = replica.ops, list(map(len, replica.plan.tokens))
    parts = all_to_all(ops, [ops.cut(x, sizes, TOKENS) for x in values], kind, replica.group)
    return [ops.join(each, HEADS) for each in parts]


def halves(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """Queries; keys with values."""
    size = qkv[0].shape[NUMBERS] // 3
    return unzip([replica.ops.cut(each, (size, 2 * size), NUMBERS) for each in qkv])


def joined(replica: Replica, of_q: Values, of_kv: Values) -> Values:
    """The inverse of `halves`."""
    return [replica.ops.join(pair, NUMBERS) for pair in zip(of_q, of_kv, strict=True)]


def unzip(pairs: Sequence[Any]) -> tuple[Values, Values]:
    """The first and the second of each device's pair."""
    firsts, seconds = zip(*pairs, strict=True)
    return list(firsts), list(seconds)
