"""What LeNet is made of, each in the form that is fast in TensorFlow, and a step as one program.

The largest gain is a setting in `frameworks/tensorflow/__init__.py`: oneDNN on every processor.
"""

from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import tensorflow as tf

from common.chapters.spec import Options

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
    """`X` (n, in) times `weight` (in, out), plus `bias` (out,).

    `X` may be (n, rows, columns, channels), too; it is flattened with its channels first.
    """
    if len(X.shape) == 4:
        X = tf.reshape(tf.transpose(X, (0, 3, 1, 2)), (-1, weight.shape[0]))
    return X @ weight + bias


@cache
def first_like(options: Options) -> Options:
    """The first options that were equal to these: TensorFlow knows an object while it lives."""
    return options


def compiled(step: Callable[P, R]) -> Callable[P, R]:
    """`step`, whose first argument is a minibatch, as one program; its numbers may change."""
    program = tf.function(step, autograph=False)

    @wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        X: Any = args[0]
        # As a number the rate would be compiled in: a new one would mean a new program.
        tensors = [tf.constant(x, X.dtype) if isinstance(x, float) else x for x in args]
        tensors = [first_like(x) if isinstance(x, Options) else x for x in tensors]
        result: R = program(*tensors, **kwargs)
        return result

    return call


def any_size(step: Callable[P, R]) -> Callable[P, R]:
    """`step` as one program for arrays of all lengths: it is not traced again for a new one."""
    program = tf.function(step, autograph=False)

    def relaxed(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return tf.TensorSpec((None, *value.shape[1:])[: value.ndim], value.dtype)

    @wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        traced = program.get_concrete_function(*tf.nest.map_structure(relaxed, args), **kwargs)
        result: R = traced(*args, **kwargs)
        return result

    return call


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """What `function` makes of each device's arguments, and of what is the `same` for all."""
    return [function(*own, **same) for own in zip(*arguments, strict=True)]
