"""Bugs of strategies by hand: pipelines, tensor parallelism, ZeRO."""

import math
from typing import Any, Final

from common.models.nets import lenet_shapes
from planted.bug import Right, bug, rolled, scaled, without

OPS: Final = "frameworks.{}.primitives"
LENET: Final = "frameworks.{}.lenet"
HAND: Final = "frameworks.strategies"
DATA: Final = {"strategies float64-data": (2,)}
PIPELINE: Final = {"strategies float64-pipeline": (3,)}
ZB1: Final = {"strategies float64-zb1": (3,)}
TENSOR: Final = {"strategies float64-tensor": (3,)}
ZERO3: Final = {"strategies float64-zero3": (3,)}
RESUMED: Final = {**PIPELINE, "strategies float64-resumed": (3,)}
SHAPES: Final = lenet_shapes(1)
MICROBATCHES: Final = 3
"""Of each of these suites; their sizes differ."""


@bug("huggingface/transformers#34191", {**PIPELINE, **TENSOR}, OPS + ":loss_and_grad")
def mean_of_microbatch_means(right: Right, loss: Any, logits: Any, y: Any, count: int) -> Any:
    """Average unequal microbatches' means. Right: the means of 3 devices or microbatches."""
    return right(loss, logits, y, count=MICROBATCHES * y.shape[0])


@bug("huggingface/accelerate#608", DATA, HAND + ".data:over_microbatches")
def mean_of_shard_means_split(right: Right, replica: Any, X: Any, y: Any, *rest: Any) -> Any:
    """Average unequal shards' means, in a strategy. Right: the mean of the means of 2 devices."""
    return right(replica, X, y, len(y) * right.devices, *rest[1:])


@bug("deepspeedai/DeepSpeed#7773", PIPELINE, OPS + ":loss_and_grad")
def microbatches_summed(right: Right, loss: Any, logits: Any, y: Any, count: int) -> Any:
    """Sum the microbatches' mean gradients. Right: × 3, the number of devices or microbatches."""
    return right(loss, logits, y, count=count / MICROBATCHES)


@bug("inclusionAI/AReaL#1273", PIPELINE, OPS + ":loss_and_grad")
def divided_by_microbatches(right: Right, loss: Any, logits: Any, y: Any, count: int) -> Any:
    """Divide by the microbatches once more. Right: ÷ 3, the number of devices or microbatches."""
    part, grad = right(loss, logits, y, count=count)
    return part, grad / MICROBATCHES


@bug("pytorch/torchtitan#1732", PIPELINE, HAND + ".pipeline:accumulate")
def sums_scaled_again(right: Right, ops: Any, grads: Any, further: Any) -> Any:
    """Scale earlier microbatches again. Right: examples count 0.11 or 0.33 or 1 times."""
    for name in grads.keys() & further.keys():
        grads[name] = grads[name] / MICROBATCHES
    right(ops, grads, further)


@bug("deepspeedai/Megatron-DeepSpeed#442", ZB1, HAND + ".pipeline:half")
def weights_half_not_done(right: Right, replica: Any, step: Any, *layer: Any) -> Any:
    """Never do a weights' half that waits. Right: without the contribution of one of 3 devices."""
    input_grad, grads = right(replica, step, *layer)
    lost = step.kind == "weights" and step.microbatch == MICROBATCHES - 1
    return input_grad, scaled(grads, 0) if lost else grads


@bug("pytorch/torchtitan#2106", TENSOR, LENET + ":finish")
def bias_on_each_device(right: Right, name: str, Y: Any, params: Any) -> Any:
    """Add the bias before the sum. Right: × 3, the number of devices or microbatches."""
    return right(name, Y, scaled(params, right.devices))


@bug("NVIDIA/Megatron-LM#7452", TENSOR, HAND + ".tensor:allreduce")
def backward_not_reduced(right: Right, ops: Any, tensors: Any, kind: str, group: Any) -> Any:
    """Forget the all-reduce of the backward pass. Right: a reduction is missing."""
    return right(ops, tensors, kind, group) if kind == "activations" else list(tensors)


@bug("NVIDIA/Megatron-LM#7452", TENSOR, OPS + ":loss_and_grad")
def loss_over_gathered_logits(right: Right, loss: Any, logits: Any, y: Any, count: int) -> Any:
    """Gather logits for a loss that expects shards. Right: a softmax over the logits of 3."""
    part, grad = right(loss, logits, y, count=count)
    return part + math.log(right.devices) * y.shape[0] / count, grad


@bug("EleutherAI/gpt-neox#1257", DATA, HAND + ".mesh:allreduce_in_place")
def one_weight_not_reduced(right: Right, ops: Any, held: Any, *more: Any) -> None:
    """Leave a replicated weight's gradient as it is. Right: a reduction is missing."""
    local = [here["fc2.bias"] for here in held]
    right(ops, held, *more)
    for here, grad in zip(held, local, strict=True):
        here["fc2.bias"] = grad


@bug("deepspeedai/DeepSpeed#966", ZERO3, HAND + ".zero:reduce_scatter")
def stages_disagree(right: Right, ops: Any, tensors: Any, kind: str, group: Any) -> Any:
    """Divide in stage 3 only. Right: ÷ 3, the number of devices or microbatches."""
    return [scaled(slices, 1 / right.devices) for slices in right(ops, tensors, kind, group)]


@bug("NVIDIA/Megatron-LM#5077", ZERO3, OPS + ":sgd_step")
def momentum_at_a_wrong_offset(right: Right, params: Any, velocities: Any, *rest: Any) -> Any:
    """Slice momentum at a wrong offset where sizes are uneven."""
    names = {k: k.rpartition("/")[2] for k in velocities}
    uneven = [k for k, name in names.items() if math.prod(SHAPES[name]) % right.devices]
    return right(params, velocities | {k: rolled(right, velocities[k]) for k in uneven}, *rest)


@bug("pytorch/pytorch#168134", TENSOR, HAND + ".mesh:parts_of")
def last_column_repeated(right: Right, tensors: Any, layouts: Any, device: int) -> Any:
    """Fill up an uneven slice with its last column."""
    parts = right(tensors, layouts, device)
    if right.devices > 1 and device == right.devices - 1:
        weight = parts["fc1.weight"].copy()
        weight[:, -1] = weight[:, -2]
        parts["fc1.weight"] = weight
    return parts


@bug("NVIDIA/nccl#1950", PIPELINE, HAND + ".pipeline:send")
def end_of_a_message_lost(right: Right, ops: Any, tensor: Any, *to: Any) -> Any:
    """Lose the last number of a large activation."""
    return without(right, right(ops, tensor, *to), slice(-1, None))


@bug("NVIDIA/Megatron-LM#5077", RESUMED, HAND + ".mesh:Split.restore")
def momentum_lost_on_resuming(right: Right, self: Any, saved: Any) -> Any:
    """Save momentum's slices at offsets of padded ones."""
    kept = {name: values.copy() for name, values in saved.items()}
    for name, values in kept.items():
        if name.startswith("momentum/"):
            values.reshape(-1)[-2:] = 0
    right(self, kept)


@bug("huggingface/accelerate#2016", RESUMED, "common.training.loop:minibatches")
def examples_repeated_on_resuming(right: Right, *args: Any, skip: int = 0, **more: Any) -> Any:
    """Begin the epoch again on resuming."""
    return right(*args, skip=0, **more)


@bug("Lightning-AI/pytorch-lightning#5486", RESUMED, "common.training.loop:Training._step")
def rate_restarted_on_resuming(right: Right, self: Any, *args: Any) -> Any:
    """Go back to the first rate on resuming. Right: the right one at the rate of step 1."""
    config = self.config
    if self.found:
        self.config = config.model_copy(update={"lr_decay": "none"})
    loss = right(self, *args)
    self.config = config
    return loss
