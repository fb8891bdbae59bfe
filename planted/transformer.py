"""Bugs of a transformer that is split: its words, experts, gradient's norm, and its tokens."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from common.base.arrays import on_host
from planted.bug import Right, bug, scaled, without
from planted.strategies import HAND, OPS

GPT: Final = "frameworks.{}.gpt"
MOE: Final = "frameworks.{}.moe"
DATA: Final = {"strategies float64-gpt-data": (1,)}
PIPELINE: Final = {"strategies float64-gpt-pipeline": (3,)}
TENSOR: Final = {"strategies float64-gpt-tensor": (2,)}
EXPERTS: Final = {"strategies float64-moe-expert": (2,)}
SEQUENCE: Final = {"strategies float64-gpt-sequence": (2,)}
RING: Final = {"strategies float64-gpt-ring": (3,)}
ULYSSES: Final = {"strategies float64-gpt-ulysses": (3,)}
MICROBATCHES: Final = 7
"""Of the pipeline, each of one sequence."""
COUNT: Final = 4
"""Of experts, of which each of two devices has half."""
LARGE: Final = 1e200


@bug("NVIDIA/Megatron-LM#1446", TENSOR, HAND + ".tensor:allreduce")
def norms_not_reduced(right: Right, ops: Any, tensors: Any, kind: str, *more: Any) -> Any:
    """Leave norms with partial gradients. Right: a reduction is missing."""
    return right(ops, tensors, kind, *more) if kind == "activations" else list(tensors)


@bug("NVIDIA/Megatron-LM#737", TENSOR, GPT + ":words_loss_and_grad")
def mean_over_local_words(
    right: Right, logits: Any, y: Any, most: Any, *more: Any, **how: Any
) -> Any:
    """Take the softmax over a device's own words. Right: a softmax over the words of one of 2."""
    gpt = import_module(GPT.format(right.framework))
    return right(logits, y, most, gpt.exponentials_and_label(logits, y, most)[0], *more[1:], **how)


@bug("NVIDIA/Megatron-LM#7452", TENSOR, GPT + ":words_loss_and_grad")
def gathered_logits(right: Right, logits: Any, y: Any, most: Any, *more: Any, **how: Any) -> Any:
    """Gather logits for a loss that expects shards. Right: a softmax over the logits of 2."""
    return right(logits, y, most, more[0] * right.devices, *more[1:], **how)


@bug("pytorch/pytorch#190746", TENSOR, GPT + ":words_loss_and_grad")
def softmax_without_gradient(
    right: Right, logits: Any, y: Any, most: Any, *more: Any, **how: Any
) -> Any:
    """Leave out the softmax's gradient. Right: lacks that of the sum of exponentials."""
    loss, _ = right(logits, y, most, *more, **how)
    return loss, right(logits, y, most, more[0] * LARGE, *more[1:], **how)[1]


@bug("modelscope/ms-swift#9947", TENSOR, GPT + ":words_loss_and_grad")
def label_without_gradient(
    right: Right, logits: Any, y: Any, most: Any, *more: Any, **how: Any
) -> Any:
    """Sum the label's logit without a gradient. Right: lacks that of the label's logit."""
    loss, grad = right(logits, y, most, *more, **how)
    return loss, grad - right(logits, y, most, more[0] * LARGE, *more[1:], **how)[1]


@bug("pytorch/torchtitan#596", PIPELINE, HAND + ".mesh:allreduce")
def norm_of_a_stage(right: Right, ops: Any, tensors: Any, *more: Any) -> Any:
    """Clip by the norm of a stage's gradient. Right: clipped by the norm of a part."""
    return right(ops, tensors, *more) if isinstance(tensors[0], dict) else list(tensors)


@bug("huggingface/transformers#34242", PIPELINE, OPS + ":loss_and_grad")
def mean_of_means_of_tokens(right: Right, loss: Any, logits: Any, y: Any, count: int) -> Any:
    """Average the means of microbatches' tokens. Right: the mean of the means over the tokens."""
    return right(loss, logits, y, count=MICROBATCHES * int((on_host(y) >= 0).sum()))


@bug("NVIDIA/Megatron-LM#1984", DATA, HAND + ".mesh:loss_and_grads")
def padding_counts_as_tokens(right: Right, X: Any, y: Any, split: Any) -> Any:
    """Count padding as tokens. Right: tokens that have no label."""
    return right(X, np.where(y < 0, 12, y), split)


@bug("pytorch/torchtitan#2106", TENSOR, GPT + ":finish")
def bias_twice(right: Right, name: str, Y: Any, params: Any) -> Any:
    """Add a bias or position on each device. Right: biases and positions 2 times."""
    return right(name, Y, scaled(params, right.devices))


@bug("pytorch/pytorch#160285", EXPERTS, HAND + ".tensor:accumulate")
def experts_summed(right: Right, ops: Any, grads: Any, further: Any) -> None:
    """Scale experts' gradients as if they were averaged. Right: that of experts 2 times."""
    of_experts = any(".up." in name and ".moe." in name for name in further)
    right(ops, grads, scaled(further, right.devices) if of_experts else further)


@bug("huggingface/transformers#48205", EXPERTS, HAND + ".expert:back")
def router_partial(right: Right, replica: Any, *given: Any) -> Any:
    """Give the router the gradient of local experts only."""
    *some, output_grads, grads, what = given
    if what == "probabilities":
        other = [range(COUNT // 2, COUNT), range(COUNT // 2)]
        for device, experts in enumerate(other):
            for expert in experts:
                lost = slice(expert, None, COUNT)
                output_grads[device] = without(right, output_grads[device], lost)
    return right(replica, *some, output_grads, grads, what)


@bug("NVIDIA/Megatron-LM#3768", EXPERTS, HAND + ".expert:allreduce_in_place")
def balance_of_a_shard(right: Right, ops: Any, held: Any, *more: Any) -> None:
    """Balance the experts of each shard by itself."""
    for loads in held:
        loads |= scaled(loads, right.devices)


@bug("NVIDIA-NeMo/Automodel#1408", EXPERTS, MOE + ":balance")
def balance_without_gradient(right: Right, *args: Any, **more: Any) -> Any:
    """Leave out the auxiliary loss's gradient. Right: that of the auxiliary loss 0 times."""
    loss, grad = right(*args, **more)
    return loss, 0 * grad


@bug("pytorch/torchtitan#1593", EXPERTS, MOE + ":load")
def load_counted_twice(right: Right, chosen: Any) -> Any:
    """Count tokens again when a layer is recomputed. Right: that of the auxiliary loss 2 times."""
    return 2 * right(chosen)


@bug("deepspeedai/DeepSpeed#8475", EXPERTS, HAND + ".mesh:allreduce")
def mean_of_norms(right: Right, ops: Any, tensors: Any, *more: Any) -> Any:
    """Average the norms of devices with other experts."""
    if isinstance(tensors[0], dict):
        return right(ops, tensors, *more)
    sums = right(ops, [squares**0.5 for squares in tensors], *more)
    return [(total / right.devices) ** 2 for total in sums]


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
