"""LeNet's operations in the form that is fast in TensorFlow, and a step as one program."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import tensorflow as tf

from common.base.arrays import Array
from common.parallel.shards import shard_sizes

Tensor: TypeAlias = tf.Tensor
P = ParamSpec("P")
R = TypeVar("R")


def images(X: Tensor) -> Tensor:
    """Images (n, 1, rows, columns) as (n, rows, columns, 1): TensorFlow's order on a CPU."""
    return tf.transpose(X, (0, 2, 3, 1))


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (n, rows, columns, in) with `weight` (out, in, r, c), without padding."""
    if X.shape[0] == 0:  # in float32, TensorFlow's would return the shape of X
        rows, columns = X.shape[1] - weight.shape[2] + 1, X.shape[2] - weight.shape[3] + 1
        return tf.zeros((0, rows, columns, weight.shape[0]), X.dtype)
    return tf.nn.conv2d(X, tf.transpose(weight, (2, 3, 1, 0)), strides=1, padding="VALID") + bias


def relu(X: Tensor) -> Tensor:
    """The larger one of each number and 0."""
    return tf.nn.relu(X)


def avg_pool2d(X: Tensor) -> Tensor:
    """The means of 2 x 2 windows of `X` (n, rows, columns, channels); odd edges are dropped."""
    return tf.nn.avg_pool2d(X, ksize=2, strides=2, padding="VALID")


def dense(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`X` (n, in), or images flattened channels first, times `weight` (in, out), plus `bias`."""
    if len(X.shape) == 4:
        X = tf.reshape(tf.transpose(X, (0, 3, 1, 2)), (-1, weight.shape[0]))
    return X @ weight + bias


def add(ours: Tensor, theirs: Tensor) -> Tensor:
    """The sum of two tensors, on the device of `ours`."""
    # TensorFlow would fuse several sums, in an order that depends on free memory.
    with tf.device(ours.device):
        return tf.raw_ops.Snapshot(input=ours + theirs)


def compiled(step: Callable[P, R]) -> Callable[P, R]:
    """`step`, whose first argument is a minibatch, as one program; its numbers may change."""
    program = tf.function(step, autograph=False)

    @wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        X: Any = args[0]
        # As a number the rate would be compiled in: a new one would mean a new program.
        tensors = [tf.constant(x, X.dtype) if isinstance(x, float) else x for x in args]
        result: R = program(*tensors, **kwargs)
        return result

    return call


def any_size(step: Callable[P, R]) -> Callable[P, R]:
    """`step` as one program for arrays of all lengths: it is not traced again for a new one."""
    program = tf.function(step, autograph=False)

    def relaxed(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        # Not empty ones: TensorFlow's convolution is right only where it knows that.
        shape = (None, *value.shape[1:])[: value.ndim] if value.size else value.shape
        return tf.TensorSpec(shape, value.dtype)

    @wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        traced = program.get_concrete_function(*tf.nest.map_structure(relaxed, args), **kwargs)
        result: R = traced(*args, **kwargs)
        return result

    return call


def scatter(array: Array, devices: Sequence[str]) -> list[Tensor]:
    """The shards of an array, each on its device; their lengths differ by at most one."""
    shards = tf.split(array, shard_sizes(array.shape[0], len(devices)))
    return [to_device(shard, device) for shard, device in zip(shards, devices, strict=True)]


def to_device(tensors: R, device: str) -> R:
    """A tensor, or a structure of tensors, on a device."""
    with tf.device(device):
        copy: R = tf.nest.map_structure(tf.identity, tensors)
        return copy


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """The results of `function` for the arguments of each device, by one program for all."""
    calls = list(zip(*arguments, strict=True))
    devices = [tf.nest.flatten(call)[0].device for call in calls]
    if not tf.executing_eagerly():
        return one_after_the_other(function, devices, calls, same)
    results = in_one_program(function, devices, calls, same)
    # A program's results are reported on the first device.
    return [to_device(result, device) for result, device in zip(results, devices, strict=True)]


def one_after_the_other(
    function: Callable[..., R],
    devices: Sequence[str],
    calls: Sequence[tuple[Any, ...]],
    same: dict[str, Any],
) -> list[R]:
    """The result of each call, computed on its device: also the gradients it asks for."""
    results = []
    for device, call in zip(devices, calls, strict=True):
        with tf.device(device):
            results.append(function(*call, **same))
    return results


in_one_program = tf.function(one_after_the_other, autograph=False)
