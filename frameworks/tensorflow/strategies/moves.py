"""How tensors get from device to device, in TensorFlow: all go by `send`, which counts them."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.ledger import Group
from common.parallel.shards import shard_sizes
from frameworks.tensorflow.kernels import to_device

Device = str
Params = dict[str, Tensor]

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def program(function: Callable[..., R]) -> Callable[..., R]:
    """`function` as one program for each device, and for each shape of what it is given.

    They are kept here, as `tf.function` takes longer to find them than most of them to run.
    """
    programs: dict[Any, Callable[..., R]] = {}

    @functools.wraps(function)
    def call(*args: Any, **same: Any) -> R:
        if not tf.executing_eagerly():  # it is a part of another program
            return function(*args, **same)
        args = tuple(dict(each) if isinstance(each, Mapping) else each for each in args)
        flat = tf.nest.flatten((args, same))
        tensors = [each for each in flat if tf.is_tensor(each)]
        device = tensors[0].device
        key = device, *[(x.dtype, x.shape) if tf.is_tensor(x) else x for x in flat]
        if key not in programs:
            specs = [tf.TensorSpec(x.shape, x.dtype) if tf.is_tensor(x) else x for x in flat]
            like = tf.nest.pack_sequence_as((args, same), specs)  # no tensor stays with the program

            def taken(*given: Tensor) -> R:
                own = iter(given)
                filled = [next(own) if isinstance(x, tf.TensorSpec) else x for x in specs]
                args, same = tf.nest.pack_sequence_as(like, filled)
                with tf.device(device):
                    return function(*args, **same)

            given = [each for each in specs if isinstance(each, tf.TensorSpec)]
            programs[key] = tf.function(taken, autograph=False).get_concrete_function(*given)
        # What a program returns passes for numbers of the first device.
        return to_device(programs[key](*tensors), device)

    return call


@functools.cache  # another function would mean another program
def partial(function: Callable[..., R], *first: Any) -> Callable[..., R]:
    """`function` with its first arguments, as one program."""
    return program(functools.partial(function, *first))


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """What `function` makes of each device's arguments, and of what is the `same` for all."""
    return [function(*each, **same) for each in zip(*arguments, strict=True)]


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    with tf.device(device):
        return tf.constant(values)


def send(tensors: T, source: int, target: int, kind: str, group: Group) -> T:
    """A copy on another device of the group, each tensor a message; to the same one, nothing goes.

    `tensors` is one tensor, or several by their names.
    """
    if source == target:
        return tensors
    if isinstance(tensors, dict):
        return {k: send(each, source, target, kind, group) for k, each in tensors.items()}
    group.message(tensors, source, target, kind)
    return to_device(tensors, group.devices[target])


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of `X` and `params`, from that of `function(X, params)`.

    That is a vector-Jacobian product. The function is computed once more for it.
    """
    own = dict(params)
    with tf.GradientTape() as tape:
        tape.watch((X, own))
        Y = function(X, own)
    # Zero where nothing depends on a parameter, as in a shard without examples.
    zero = tf.UnconnectedGradients.ZERO
    found: tuple[Tensor, Params] = tape.gradient(Y, (X, own), grad, zero)
    return found


def allreduce(tensors: Sequence[T], kind: str, group: Group) -> list[T]:
    """The sum of what lies on all devices of a group, on each of them.

    The first device adds it up, as in the first chapter.
    """
    total = tensors[0]
    for device, each in enumerate(tensors[1:], start=1):
        total = plus(total, send(each, device, 0, kind, group))
    return [send(total, 0, device, kind, group) for device in range(len(tensors))]


def reduce_scatter(tensors: Sequence[Params], kind: str, group: Group) -> list[Params]:
    """A slice of the sum of each tensor, in one row, for each device: each adds up its own."""
    slices = [cut(each, len(tensors)) for each in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = plus(total, send(slices[source][target], source, target, kind, group))
        totals.append(total)
    return totals


def all_gather(slices: Sequence[Params], shapes: Shapes, kind: str, group: Group) -> list[Params]:
    """The whole tensors on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(put_together(parts, shapes))
    return found


def plus(one: T, other: T) -> T:
    """The sum of two tensors, or of those of each name."""
    with where(one):
        if isinstance(one, dict):
            return {name: one[name] + each for name, each in other.items()}
        return one + other


def cut(tensors: Params, devices: int) -> list[Params]:
    """The slices of tensors, each in one row, for so many devices."""
    with where(tensors):
        rows = {
            name: tf.split(tf.reshape(tensor, (-1,)), shard_sizes(math.prod(tensor.shape), devices))
            for name, tensor in tensors.items()
        }
    return [{name: row[i] for name, row in rows.items()} for i in range(devices)]


def put_together(parts: Sequence[Params], shapes: Shapes) -> Params:
    """The inverse of `cut`."""
    with where(parts):
        return {
            k: tf.reshape(tf.concat([part[k] for part in parts], 0), shapes[k]) for k in parts[0]
        }


def where(tensors: Any) -> AbstractContextManager[None]:
    """Has done what follows on the device of these tensors; TensorFlow would take the first one."""
    device: AbstractContextManager[None] = tf.device(tf.nest.flatten(tensors)[0].device)
    return device
