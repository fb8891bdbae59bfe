"""Attention to the tokens of all devices of a group, each of which has some.

They pass keys and values on in a ring (Liu et al., 2023), gather them all, or exchange tokens for
heads (DeepSpeed-Ulysses, Jacobs et al., 2023). Masks compare the places of tokens in the sequence.
"""

from functools import partial
from typing import Final

from frameworks.strategies.collectives import reduce_scatter
from frameworks.strategies.replica import Replica
from frameworks.strategies.tokens import (
    TOKENS,
    Values,
    gathered,
    halves,
    joined,
    later,
    passed_on,
    to_heads,
    to_tokens,
    unzip,
)


def ring(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """What heads find as keys and values pass by, and the logarithm of its sum of exponentials."""
    ops, net = replica.ops, replica.net
    q, kv = halves(replica, qkv)
    found = unzip(ops.on_each_device(net.attend_part, q, kv, later(replica, 0)))
    for step in range(1, len(q)):
        kv = passed_on(replica, kv, "activations")
        part = unzip(ops.on_each_device(net.attend_part, q, kv, later(replica, step)))
        found = unzip(ops.on_each_device(net.merge, *found, *part))
    return found


def ring_backward(
    replica: Replica, qkv: Values, heads: Values, log_sums: Values, grads: Values
) -> Values:
    """Keys and values go round again, and with them their gradients, until they are home."""
    ops, net = replica.ops, replica.net
    q, kv = halves(replica, qkv)
    known = heads, log_sums, grads
    parts = ops.on_each_device(net.part_backward, q, kv, *known, later(replica, 0))
    of_q, of_kv = unzip(parts)
    for step in range(1, len(q)):
        kv, of_kv = passed_on(replica, kv, "activations"), passed_on(replica, of_kv, "gradients")
        parts = ops.on_each_device(net.part_backward, q, kv, *known, later(replica, step))
        of_q, of_kv = map(partial(ops.on_each_device, ops.add), (of_q, of_kv), unzip(parts))
    return joined(replica, of_q, passed_on(replica, of_kv, "gradients"))


def gather(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """The same, with all keys and values at once."""
    q, kv = halves(replica, qkv)
    known = q, gathered(replica, kv), later(replica)
    return unzip(replica.ops.on_each_device(replica.net.attend_part, *known))


def gather_backward(
    replica: Replica, qkv: Values, heads: Values, log_sums: Values, grads: Values
) -> Values:
    """Keys and values are gathered again; each device adds up the gradients of its own."""
    ops, sizes = replica.ops, list(map(len, replica.plan.tokens))
    q, kv = halves(replica, qkv)
    known = q, gathered(replica, kv), heads, log_sums, grads, later(replica)
    of_q, of_kv = unzip(ops.on_each_device(replica.net.part_backward, *known))
    parts = [ops.cut(each, sizes, TOKENS) for each in of_kv]
    return joined(replica, of_q, reduce_scatter(ops, parts, "gradients", replica.group))


def ulysses(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """What heads find, each on one device; and there queries, keys and values of all tokens."""
    by_heads = to_heads(replica, qkv, "activations")
    known = *halves(replica, by_heads), later(replica, by_heads=True)
    found, _ = unzip(replica.ops.on_each_device(replica.net.attend_part, *known))
    return to_tokens(replica, found, "activations"), by_heads


def ulysses_backward(
    replica: Replica, qkv: Values, heads: Values, by_heads: Values, grads: Values
) -> Values:
    """Gradients are exchanged as tokens and heads are."""
    ops, net = replica.ops, replica.net
    known, hidden = halves(replica, by_heads), later(replica, by_heads=True)
    found = unzip(ops.on_each_device(net.attend_part, *known, hidden))
    grads = to_heads(replica, grads, "gradients")
    parts = ops.on_each_device(net.part_backward, *known, *found, grads, hidden)
    return to_tokens(replica, joined(replica, *unzip(parts)), "gradients")


EXCHANGES: Final = {
    "ring": (ring, ring_backward),
    "gather": (gather, gather_backward),
    "ulysses": (ulysses, ulysses_backward),
}
"""Forward and backward: the second takes what the first has taken and given, and a gradient."""
