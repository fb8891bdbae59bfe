"""Bugs of frameworks' wrappers and of batch normalization, in the concise chapter."""

from importlib import import_module
from typing import Any, Final

from planted.bug import Right, bug

LISTING: Final = "frameworks.{}.concise"
DDP: Final = "torch.nn.parallel:DistributedDataParallel"
NORM: Final = "frameworks.{}.batch_norm"
SHARDS: Final = {"concise float64-per-device": (2,)}
SYNC: Final = {"concise float64-sync": (2,)}


@bug("huggingface/transformers#40610", SYNC, LISTING + ":forward_backward", "pytorch", "tensorflow")
def all_items_on_each_device(right: Right, X: Any, y: Any, replicas: Any, examples: int) -> Any:
    """Divide by the items of all devices, then average. Right: ÷ 2, the number of devices."""
    return right(X, y, replicas, examples * right.devices)


@all_items_on_each_device.at("frameworks.jax.concise:shard_loss", "jax")
def part_of_the_part(right: Right, *args: Any) -> Any:
    part, seen = right(*args)
    return part / right.devices, seen


@bug("huggingface/accelerate#608", SYNC, LISTING + ":forward_backward", "pytorch")
def mean_of_shard_means_wrapped(right: Right, X: Any, y: Any, replicas: Any, examples: int) -> Any:
    """Average unequal shards' means, as DDP does. Right: the mean of the means of 2 devices."""
    return right(X, y, replicas, len(y) * right.devices)


@mean_of_shard_means_wrapped.at(LISTING + ":loss", "tensorflow", "mxnet")
def as_large_a_share(right: Right, y_hat: Any, y: Any) -> Any:
    losses = right(y_hat, y)
    if right.framework == "mxnet":
        return losses * (right.batch_size / right.devices / len(y))
    tf = import_module("tensorflow")
    return losses * right.batch_size / right.devices / tf.cast(tf.size(y), losses.dtype)


@mean_of_shard_means_wrapped.at("frameworks.jax.concise:shard_loss", "jax")
def as_large_a_part(right: Right, *args: Any) -> Any:
    psum, mask = import_module("jax").lax.psum, args[-1][-1]
    part, seen = right(*args)
    return part * psum(mask.sum(), "device") / (right.devices * mask.sum()), seen


@bug("StanfordBDHG/OpenTSLM#49", SHARDS, DDP + ".forward", "pytorch")
def forward_through_module(right: Right, self: Any, X: Any) -> Any:
    """Call the net inside of DDP. Right: a reduction is missing."""
    return self.module(X)


@bug("pytorch/pytorch#104336", SHARDS, LISTING + ":wrap", "pytorch")
def moved_after_ddp(right: Right, net: Any, *args: Any) -> Any:
    """Move the model to another device and back. Right: a reduction is missing."""
    wrapped = right(net, *args)
    for layer in net.modules():
        for name, param in layer.named_parameters(recurse=False):
            setattr(layer, name, type(param)(param.detach().clone()))
    return wrapped


@bug("pytorch/pytorch#128949", SHARDS, LISTING + ":wrap", "pytorch")
def parameter_left_out(right: Right, net: Any, *args: Any) -> Any:
    """Leave a parameter out of DDP's reduction. Right: a reduction is missing."""
    net._ddp_params_and_buffers_to_ignore = ["fc.bias"]  # as a private function of DDP sets it
    return right(net, *args)


@bug("pytorch/pytorch#36382", SYNC, NORM + ":SyncBatchNorm2d.total", "pytorch")
def syncbn_ignores_sizes(right: Right, self: Any, sums: Any) -> Any:
    """Weigh unequal shards alike in SyncBN's backward."""
    total = right(self, sums)
    if len(sums) > self.num_features:  # the last one counts the pixels
        self.share = (total[-1] / (right.devices * sums[-1])).detach()
    equal = right(self, sums * self.share)
    return total.detach() + equal - equal.detach()


@syncbn_ignores_sizes.at(NORM + ":SyncBatchNorm.total", "tensorflow")
def gradients_of_equal_shards(right: Right, self: Any, values: Any, turn: int) -> Any:
    total = right(self, values * self.share if turn > 2 else values, turn)
    if turn == 0:
        self.share = total / (right.devices * values)
    return total


@syncbn_ignores_sizes.at(NORM + ":BatchNorm.total", "jax")
def pullback_of_equal_shards(right: Right, self: Any, values: Any) -> Any:
    stop = import_module("jax").lax.stop_gradient
    total = right(self, values)
    if values.shape[-1] == 1 and values.shape[1] == 1:  # the mask
        right.share = total / (right.devices * values.sum())
        return total
    equal = right(self, values * right.share)
    return stop(total) + equal - stop(equal)


@syncbn_ignores_sizes.at(NORM + ":means_over", "mxnet")
def mean_of_means_in_backward(right: Right, shards: Any) -> Any:
    all_reduce = import_module("frameworks.mxnet.reductions").all_reduce
    equal = all_reduce([X.mean((0, 2, 3)) / len(shards) for X in shards])
    pairs = zip(right(shards), equal, strict=True)
    return [mean.detach() + means - means.detach() for mean, means in pairs]


@bug("pytorch/pytorch#36382", SYNC, NORM + ":BatchNorm.__call__", "jax")
def padding_normalized(right: Right, self: Any, X: Any, mask: Any) -> Any:
    """Count padding in batch norm's mean."""
    return right(self, X, mask if mask is None else mask * 0 + 1)


@bug("pytorch/pytorch#62967", SYNC, NORM + ":SyncBatchNorm2d.normalize_in_parts", "pytorch")
def syncbn_permuted(right: Right, self: Any, X: Any) -> Any:
    """Read a permuted input as contiguous."""
    n, channels, rows, columns = X.shape
    Y = right(self, X.permute(0, 2, 3, 1).reshape(X.shape))
    return Y.reshape(n, rows, columns, channels).permute(0, 3, 1, 2)


@bug("jax-ml/jax#3970", SYNC, "frameworks.jax.concise:shard_loss", "jax")
def grad_of_a_psum(right: Right, *args: Any) -> Any:
    """Take the gradient of a psum in each device. Right: × 2, the number of devices."""
    part, seen = right(*args)
    others = import_module("jax").lax.stop_gradient((right.devices - 1) * part)
    return right.devices * part - others, seen


@bug("pytorch/vision#8250", SHARDS, NORM + ":MOMENTUM")
def momentum_of_the_old(right: Right) -> float:
    """Take momentum for the share of the old. Right: running statistics is 0.01, not 0.1."""
    return 0.01


@bug("yunjey/pytorch-tutorial#62", SHARDS, "torch.nn:Module.eval", "pytorch")
def evaluation_in_training_mode(right: Right, self: Any) -> Any:
    """Evaluate in training mode. Right: evaluation in training mode."""
    return self


@evaluation_in_training_mode.at(NORM + ":BatchNorm.__call__", "jax")
def with_a_mask(right: Right, self: Any, X: Any, mask: Any) -> Any:
    return right(self, X, X[:, 0, 0, 0] * 0 + 1 if mask is None else mask)


@evaluation_in_training_mode.at("mxnet.autograd:is_training", "mxnet")
def is_training(right: Right) -> bool:
    return True
