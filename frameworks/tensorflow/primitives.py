"""The primitives of `frameworks/strategies`, in TensorFlow."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_sizes
from frameworks.strategies import layers
from frameworks.strategies.layers import on_each_device
from frameworks.tensorflow.kernels import avg_pool2d, conv2d, dense, images, relu, to_device
from frameworks.tensorflow.scratch import loss

__all__ = ["on_each_device"]

Device = str
Params = dict[str, Tensor]

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def program(function: Callable[..., R]) -> Callable[..., R]:
    """`function` compiled once for each device and for each shape of its arguments."""
    # `tf.function` takes longer to find a program than most of them to run.
    programs: dict[Any, Callable[..., R]] = {}

    @functools.wraps(function)
    def call(*args: Any, **same: Any) -> R:
        if not tf.executing_eagerly():  # it is a part of another program
            return function(*args, **same)
        args = tuple(dict(arg) if isinstance(arg, Mapping) else arg for arg in args)
        flat = tf.nest.flatten((args, same))
        tensors = [x for x in flat if tf.is_tensor(x)]
        device = tensors[0].device
        key = device, *[(x.dtype, x.shape) if tf.is_tensor(x) else x for x in flat]
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


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    with tf.device(device):
        return tf.constant(values)


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    if isinstance(tensors, dict):
        return {name: to_device(tensor, device) for name, tensor in tensors.items()}
    return to_device(tensors, device)


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(conv2d(images(X) if name == "conv1" else X, weight, bias)))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


def product(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a row-parallel layer for some input channels, without its bias."""
    weight = params[f"{name}.weight"]
    if name.startswith("conv"):
        return conv2d(X, weight, tf.zeros(weight.shape[0], weight.dtype))
    return dense(X, weight, tf.zeros(weight.shape[1], weight.dtype))


def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias))
    return Y + bias if name == "fc2" else relu(Y + bias)


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    leaves = dict(params)
    with tf.GradientTape() as tape:
        tape.watch((X, leaves))
        Y = function(X, leaves)
    # Zero where nothing depends on a parameter, as in a shard without examples.
    zero = tf.UnconnectedGradients.ZERO
    grads: tuple[Tensor, Params] = tape.gradient(Y, (X, leaves), grad, zero)
    return grads


forward = program(functools.partial(layers.forward, layer))
backward = program(functools.partial(layers.backward, layer, vjp))


@program
def loss_and_grad(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by all `examples`, and its gradient by the logits."""
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = tf.reduce_sum(loss(logits, y)) / examples
    return part, tape.gradient(part, logits)


def add(one: T, other: T) -> T:
    """The sum of two tensors, or of two dictionaries of tensors by name."""
    with where(one):
        return layers.add(one, other)


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
