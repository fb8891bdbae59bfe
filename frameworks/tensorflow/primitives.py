"""The primitives of `frameworks/strategies`, in TensorFlow."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_sizes
from frameworks.strategies import layers
from frameworks.tensorflow.kernels import to_device

Device = str
Params = dict[str, Tensor]

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def program(function: Callable[..., R]) -> Callable[..., R]:
    """`function` compiled once for each device and for each shape of its arguments.

    Numbers by keyword may change; they get the dtype of the first tensor.
    """
    # `tf.function` takes longer to find a program than most of them to run.
    programs: dict[Any, Callable[..., R]] = {}

    @functools.wraps(function)
    def call(*args: Any, **same: Any) -> R:
        if not tf.executing_eagerly():  # it is a part of another program
            return function(*args, **same)
        args = tuple(dict(arg) if isinstance(arg, Mapping) else arg for arg in args)
        names = [name for arg in args if isinstance(arg, dict) for name in arg]
        first = next(filter(tf.is_tensor, tf.nest.flatten(args)))
        device = first.device
        with tf.device(device):
            same = tf.nest.map_structure(lambda number: tf.constant(number, first.dtype), same)
        flat = tf.nest.flatten((args, same))
        tensors = [x for x in flat if tf.is_tensor(x)]
        key = device, *names, *[(x.dtype, x.shape) if tf.is_tensor(x) else x for x in flat]
        if key not in programs:
            specs = [tf.TensorSpec(x.shape, x.dtype) if tf.is_tensor(x) else x for x in flat]
            like = tf.nest.pack_sequence_as((args, same), specs)  # no tensor stays with the program

            def compiled(*inputs: Tensor) -> R:
                remaining = iter(inputs)
                filled = [next(remaining) if isinstance(x, tf.TensorSpec) else x for x in specs]
                args, same = tf.nest.pack_sequence_as(like, filled)
                with tf.device(device):
                    return function(*args, **same)

            inputs = [x for x in specs if isinstance(x, tf.TensorSpec)]
            programs[key] = tf.function(compiled, autograph=False).get_concrete_function(*inputs)
        # A program's results are reported on the first device.
        return to_device(programs[key](*tensors), device)

    return call


@functools.cache  # another function would mean another program
def partial(function: Callable[..., R], *first: Any) -> Callable[..., R]:
    """`function` with its first arguments, as one program."""
    return program(functools.partial(function, *first))


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """The results of `function` for the arguments of each device, each by a program there."""
    return layers.on_each_device(partial(function), *arguments, **same)


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    with tf.device(device):
        return tf.constant(values)


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    if isinstance(tensors, dict):
        return {name: to_device(tensor, device) for name, tensor in tensors.items()}
    return to_device(tensors, device)


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
    half: str = "",
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    inputs = [X] if X.dtype.is_floating and half != "weights" else []  # tokens have no gradient
    leaves = {} if half == "input" else dict(params)
    with tf.GradientTape() as tape:
        tape.watch((inputs, leaves))
        Y = function(X, dict(params))
    # Zero where nothing depends on a parameter, as in a shard without examples.
    zero = tf.UnconnectedGradients.ZERO
    grads = tape.gradient(Y, (inputs, leaves), grad, zero)
    # The gradient of `tf.gather` is sparse.
    input_grads, param_grads = tf.nest.map_structure(tf.convert_to_tensor, grads)
    return input_grads[0] if inputs else X, param_grads


forward = program(layers.forward)
backward = program(functools.partial(layers.backward, vjp))


@program
def loss_and_grad(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by `count`, and its gradient by the logits."""
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = tf.reduce_sum(loss(logits, y)) / count
    return part, tape.gradient(part, logits)


def add(one: T, other: T) -> T:
    """The sum of two tensors, or of two dictionaries of tensors by name."""
    with where(one):
        return layers.add(one, other)


def maximum(one: Tensor, other: Tensor) -> Tensor:
    """The larger of each two numbers."""
    with where(one):
        return tf.maximum(one, other)


def cut(tensor: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    """The parts of a tensor, which have these sizes along an axis."""
    with where(tensor):
        parts: list[Tensor] = tf.split(tensor, sizes, axis)
        return parts


def join(parts: Sequence[Tensor], axis: int) -> Tensor:
    """The tensor that has these parts along an axis: the inverse of `cut`."""
    with where(parts):
        return tf.concat(parts, axis)


@program
def squares(tensors: Params) -> Tensor:
    """The sum of the squares of all numbers."""
    return tf.reduce_sum(tf.stack([tf.reduce_sum(tensor**2) for tensor in tensors.values()]))


@program
def clip(tensors: Params, squares: Tensor, most: float) -> Params:
    """Tensors of which all squares add up to `squares`, scaled to a norm of `most` at most."""
    scale = most / tf.maximum(tf.sqrt(squares), most)
    return {name: scale * tensor for name, tensor in tensors.items()}


def split(tensors: Params, devices: int) -> list[Params]:
    """The slices of flattened tensors, one for each device; sizes differ by at most one."""
    with where(tensors):
        slices = {
            name: tf.split(tf.reshape(tensor, (-1,)), shard_sizes(math.prod(tensor.shape), devices))
            for name, tensor in tensors.items()
        }
    return [{name: flat[i] for name, flat in slices.items()} for i in range(devices)]


def concat(slices: Sequence[Params], shapes: Shapes) -> Params:
    """The tensors of these shapes: the inverse of `split`."""
    with where(slices):
        return {
            k: tf.reshape(tf.concat([part[k] for part in slices], 0), shapes[k]) for k in slices[0]
        }


def adam_step(
    params: Params, moments: Params, grads: Params, lr: float, unbiased: Sequence[float]
) -> tuple[Params, Params]:
    """Updated parameters and moments; `unbiased` are 1 - b^t of both moments in step t."""
    step = partial(layers.adam_step)
    stepped: tuple[Params, Params] = step(params, moments, grads, lr=lr, unbiased=unbiased)
    return stepped


def sgd_step(
    params: Params, velocities: Params, grads: Params, lr: float, momentum: float
) -> tuple[Params, Params]:
    """Updated parameters and velocities: v = momentum v + grad, w = w - lr v."""
    with where(params):
        return layers.sgd_step(params, velocities, grads, lr, momentum)


def where(tensors: Any) -> AbstractContextManager[None]:
    """A context that computes on the device of these tensors, not on the first one."""
    device: AbstractContextManager[None] = tf.device(tf.nest.flatten(tensors)[0].device)
    return device
