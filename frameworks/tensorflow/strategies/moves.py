"""How tensors get from device to device, in TensorFlow: all go by `send`, which counts them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.ledger import Group
from common.parallel.shards import shard_sizes
from frameworks.tensorflow.kernels import one_after_the_other, to_device

Device = str
Params = dict[str, Tensor]
P = ParamSpec("P")
R = TypeVar("R")

T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def program(function: Callable[P, R]) -> Callable[P, R]:
    """`function` as one program, on the device of the first tensor that it is given.

    What counts messages stays outside: it would count as the program is made, and never again.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not tf.executing_eagerly():  # it is a part of another program
            return function(*args, **kwargs)
        device = next(each.device for each in tf.nest.flatten(args) if tf.is_tensor(each))
        with tf.device(device):
            found: R = in_one_program(function, *args, *kwargs.values())
        return moved(found, device)

    return call


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """That of the kernels; its programs are found as others here are."""
    calls = list(zip(*arguments, strict=True))
    devices = [tf.nest.flatten(call)[0].device for call in calls]
    results = in_one_program(one_after_the_other, function, devices, calls, same)
    return [moved(each, device) for each, device in zip(results, devices, strict=True)]


def moved(found: R, device: Device) -> R:
    """What a program returns passes for numbers of the first device: on its own device."""
    if all(each.device == device for each in tf.nest.flatten(found)):
        return found
    return to_device(found, device)


PROGRAMS: Final[dict[Any, Any]] = {}
"""Programs by their function, the shapes and devices of tensors, and all else that they are given.

A step has many small programs: `tf.function` takes longer to find each than most need to run.
"""


def in_one_program(function: Callable[..., R], *args: Any) -> R:
    """`function` as one program, which is made once for what it is given."""
    tensors: list[Tensor] = []
    key = function, seen(args, tensors)
    if key not in PROGRAMS:
        specs = [tf.TensorSpec(each.shape, each.dtype) for each in tensors]
        flat = tf.function(lambda *given: function(*filled(args, iter(given))), autograph=False)
        PROGRAMS[key] = flat.get_concrete_function(*specs)
    found: R = PROGRAMS[key](*tensors)
    return found


def seen(value: Any, tensors: list[Tensor]) -> Any:
    """What a program depends on, for it to be found by; `tensors` are added to those there are."""
    if isinstance(value, tf.Tensor):
        tensors.append(value)
        return value.dtype, value.device, tuple(value.shape)
    if isinstance(value, dict):
        return tuple((key, seen(each, tensors)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple([seen(each, tensors) for each in value])
    return value


def filled(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same value, with the next one of `tensors` for each of its own."""
    if isinstance(value, tf.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return {key: filled(each, tensors) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, tensors) for each in value]
    return value


@cache  # TensorFlow makes a program again for a function that it does not know
def bound(function: Callable[..., R], first: Any) -> Callable[..., R]:
    """`function` without its first argument, the same one each time."""
    return partial(function, first)


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    with tf.device(device):
        return tf.constant(values)


def send(tensors: T, source: int, target: int, kind: str, group: Group) -> T:
    """A copy on another device of the group, each tensor a message; to the same one, nothing goes.

    They are one tensor, or several by their names.
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
    params: Params,
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of `X` and `params`, from that of `function(X, params)`.

    That is a vector-Jacobian product. The function is computed once more for it.
    """
    with tf.GradientTape() as tape:
        tape.watch((X, params))
        Y = function(X, params)
    # Zero where nothing depends on a parameter, as in a shard without examples.
    zero = tf.UnconnectedGradients.ZERO
    found: tuple[Tensor, Params] = tape.gradient(Y, (X, params), grad, zero)
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


@program
def plus(one: T, other: T) -> T:
    """The sum of two tensors, or of those of each name."""
    if isinstance(one, dict):
        return {name: one[name] + each for name, each in other.items()}
    return one + other


@program
def cut(tensors: Params, devices: int) -> list[Params]:
    """The slices of tensors, each in one row, for so many devices."""
    rows = {
        name: tf.split(tf.reshape(tensor, (-1,)), shard_sizes(tensor.shape.num_elements(), devices))
        for name, tensor in tensors.items()
    }
    return [{name: row[i] for name, row in rows.items()} for i in range(devices)]


@program
def put_together(parts: Sequence[Params], shapes: Shapes) -> Params:
    """The inverse of `cut`."""
    return {k: tf.reshape(tf.concat([part[k] for part in parts], 0), shapes[k]) for k in parts[0]}
