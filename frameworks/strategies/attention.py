"""Attention to the tokens of all devices of a group, each of which has some.

They pass keys and values on in a ring (Liu et al., 2023), gather them all, or exchange tokens for
heads (DeepSpeed-Ulysses, Jacobs et al., 2023). Masks compare the places of tokens in the sequence.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from frameworks.strategies.axes import all_gather, all_to_all, passed_on, reduce_scatter
from frameworks.strategies.masks import masks, masks_by_hop
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica

HEADS, TOKENS, NUMBERS = 1, 2, 3
"""The axes of queries, keys and values (n, a, T, 3d)."""

Values: TypeAlias = list[Tensor]
"""A tensor on each device."""


def ring(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """What heads find as keys and values pass by, and the logarithm of its sum of exponentials."""
    each, net = replica.ops.on_each_device, replica.net
    q, kv = halves(replica, qkv)
    first, *hops = masks_by_hop(replica)
    found = unzip(each(net.attend_part, q, kv, first))
    for mask in hops:
        kv = passed_on(replica, kv, "activations")
        part = unzip(each(net.attend_part, q, kv, mask))
        found = unzip(each(net.merge, *found, *part))
    return found


def ring_backward(
    replica: Replica, qkv: Values, heads: Values, log_sums: Values, grads: Values
) -> Values:
    """Keys and values go round again, and with them their gradients, until they are home."""
    each, add, net = replica.ops.on_each_device, replica.ops.add, replica.net
    q, kv = halves(replica, qkv)
    first, *hops = masks_by_hop(replica)
    of_q, of_kv = unzip(each(net.part_backward, q, kv, heads, log_sums, grads, first))
    for mask in hops:
        kv, of_kv = passed_on(replica, kv, "activations"), passed_on(replica, of_kv, "gradients")
        part = unzip(each(net.part_backward, q, kv, heads, log_sums, grads, mask))
        of_q, of_kv = each(add, of_q, part[0]), each(add, of_kv, part[1])
    return joined(replica, of_q, passed_on(replica, of_kv, "gradients"))


def gather(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """The same, with all keys and values at once."""
    q, kv = halves(replica, qkv)
    known = q, all_gather(replica, kv, TOKENS, "activations"), masks(replica)
    return unzip(replica.ops.on_each_device(replica.net.attend_part, *known))


def gather_backward(
    replica: Replica, qkv: Values, heads: Values, log_sums: Values, grads: Values
) -> Values:
    """Keys and values are gathered again; each device adds up the gradients of its own."""
    q, kv = halves(replica, qkv)
    everything = all_gather(replica, kv, TOKENS, "activations")
    known = q, everything, heads, log_sums, grads, masks(replica)
    of_q, of_kv = unzip(replica.ops.on_each_device(replica.net.part_backward, *known))
    of_kv = reduce_scatter(replica, of_kv, sizes(replica), TOKENS, "gradients")
    return joined(replica, of_q, of_kv)


def ulysses(replica: Replica, qkv: Values) -> tuple[Values, Values]:
    """What heads find, each on one device; and there queries, keys and values of all tokens."""
    by_heads = to_heads(replica, qkv, "activations")
    known = *halves(replica, by_heads), masks(replica, by_heads=True)
    found, _ = unzip(replica.ops.on_each_device(replica.net.attend_part, *known))
    return to_tokens(replica, found, "activations"), by_heads


def ulysses_backward(
    replica: Replica, qkv: Values, heads: Values, by_heads: Values, grads: Values
) -> Values:
    """Gradients are exchanged as tokens and heads are."""
    each, net = replica.ops.on_each_device, replica.net
    known, mask = halves(replica, by_heads), masks(replica, by_heads=True)
    found = unzip(each(net.attend_part, *known, mask))
    grads = to_heads(replica, grads, "gradients")
    parts = unzip(each(net.part_backward, *known, *found, grads, mask))
    return to_tokens(replica, joined(replica, *parts), "gradients")


EXCHANGES: Final = {
    "ring": (ring, ring_backward),
    "gather": (gather, gather_backward),
    "ulysses": (ulysses, ulysses_backward),
}
"""Forward and backward: the second takes what the first has taken and given, and a gradient."""


def sizes(replica: Replica) -> list[int]:
    """The number of tokens on each device."""
    return list(map(len, replica.plan.tokens))


def to_heads(replica: Replica, values: Values, kind: str) -> Values:
    """Some heads of all tokens, for all heads of some tokens."""
    heads = [values[0].shape[HEADS] // len(values)] * len(values)
    return all_to_all(replica, values, heads, (HEADS, TOKENS), kind)


def to_tokens(replica: Replica, values: Values, kind: str) -> Values:
    """The inverse of `to_heads`."""
    return all_to_all(replica, values, sizes(replica), (TOKENS, HEADS), kind)


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
