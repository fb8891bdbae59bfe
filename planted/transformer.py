"""Bugs of a transformer that is split: its vocabulary, its tokens, the norm of its gradient."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from common.base.arrays import on_host
from planted.bug import Right, bug
from planted.strategies import HAND, OPS
from planted.tensors import scaled

GPT: Final = "frameworks.{}.gpt"
DATA: Final = {"strategies float64-gpt-data": (1,)}
PIPELINE: Final = {"strategies float64-gpt-pipeline": (3,)}
TENSOR: Final = {"strategies float64-gpt-tensor": (2,)}
RESUMED: Final = {**TENSOR, "strategies float64-gpt-resumed": (2,)}
MICROBATCHES: Final = 7
"""Of the pipeline, each of one sequence."""
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
