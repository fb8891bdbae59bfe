"""The primitives of `frameworks/strategies`, in TensorFlow."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
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


def on_its_device(function: Callable[..., R]) -> Callable[..., R]:
    """`function` on the device of its first tensor: by itself it computes on the first device."""

    @functools.wraps(function)
    def call(*args: Any) -> R:
        with tf.device(tf.nest.flatten(args[0])[0].device):
            return function(*args)

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


add = on_its_device(layers.add)
maximum = on_its_device(tf.maximum)
cut = on_its_device(tf.split)
join = on_its_device(tf.concat)
reshape = on_its_device(tf.reshape)
squares = program(functools.partial(layers.squares, tf.reduce_sum))
clip = program(functools.partial(layers.clip, tf.maximum))
adam_step = program(layers.adam_step)
sgd_step = on_its_device(layers.sgd_step)
