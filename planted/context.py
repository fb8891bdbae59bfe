"""Bugs of tokens that are shared by devices: their norms, their places, their attention."""

from typing import Any, Final

import numpy as np

from planted.bug import Right, bug
from planted.strategies import HAND, OPS
from planted.transformer import GPT

SEQUENCE: Final = {"strategies float64-gpt-sequence": (2,)}
RING: Final = {"strategies float64-gpt-ring": (3,)}
ULYSSES: Final = {"strategies float64-gpt-ulysses": (3,)}


@bug("NVIDIA/Megatron-LM#1446", SEQUENCE, HAND + ".replica:sum_shared")
def norms_of_own_tokens(right: Right, *given: Any) -> None:
    """Update norms by the tokens of one device. Right: a reduction is missing."""


@bug("NVIDIA/Megatron-LM#906", RING, OPS + ":loss_and_grad")
def loss_scaled_twice(right: Right, *given: Any, **how: Any) -> Any:
    """Scale the loss by the devices, and the gradient again. Right: is 3 times as large."""
    loss, grad = right(*given, **how)
    return loss, right.devices * grad


@bug("NVIDIA/TransformerEngine#1557", RING, GPT + ":merge")
def stale_sums(right: Right, Y: Any, log_sums: Any, *part: Any) -> Any:
    """Keep the first part's sum of exponentials."""
    return right(Y, log_sums, *part)[0], log_sums


@bug("huggingface/transformers#36607", RING, HAND + ".replica:Replica.place")
def labels_shifted_in_shards(right: Right, replica: Any, values: Any, *shards: Any) -> Any:
    """Shift labels in each shard, whose last token has none. Right: labels are shifted there."""
    if values.min() < 0:
        last = [tokens[-1] for tokens in replica.plan.tokens]
        values = np.where(np.isin(np.arange(values.shape[1]), last), -1, values)
    return right(replica, values, *shards)


@bug("NVIDIA/Megatron-LM#1612", RING, HAND + ".mesh:parts_of")
def positions_from_0(right: Right, tensors: Any, layouts: Any, device: int) -> Any:
    """Count positions on each device from 0. Right: each device's tokens from 0."""
    parts = right(tensors, layouts, device)
    name = "embed.position"
    return {**parts, name: tensors[name][: len(parts[name])]} if name in parts else parts


@bug("deepspeedai/DeepSpeed#5248", ULYSSES, HAND + ".attention:to_tokens")
def ulysses_gradient_per_device(right: Right, replica: Any, values: Any, kind: str) -> Any:
    """Scale the gradient of queries, keys and values by the number of devices."""
    return right(replica, [right.devices ** (kind == "gradients") * x for x in values], kind)
