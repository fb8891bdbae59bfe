"""How tensors get from device to device, in TensorFlow: all go by `send`, which counts them."""

from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, ParamSpec, TypeVar

import tensorflow as tf
from tensorflow import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group
from common.parallel.shards import shard_sizes
from frameworks.tensorflow.kernels import add, to_device

Device = str
Params = dict[str, Tensor]
P = ParamSpec("P")
R = TypeVar("R")


def program(function: Callable[P, R]) -> Callable[P, R]:
    """`function` as one program, on the device of the first tensor that it is given.

    A program is made once for all that is no tensor, and for all shapes. What counts messages stays
    outside: it would count as the program is made, and never again.
    """
    compiled = tf.function(function, autograph=False)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not tf.executing_eagerly():  # it is a part of another program
            return function(*args, **kwargs)
        device = next(each.device for each in tf.nest.flatten(args) if tf.is_tensor(each))
        with tf.device(device):
            found: R = compiled(*args, **kwargs)
        # What a program returns passes for numbers of the first device.
        return to_device(found, device)

    return call


@cache  # TensorFlow makes a program again for a function that it does not know
def bound(function: Callable[..., R], first: Any) -> Callable[..., R]:
    """`function` without its first argument, the same one each time."""
    return partial(function, first)


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    with tf.device(device):
        return tf.constant(values)


def send(tensor: Tensor, source: int, target: int, kind: str, group: Group) -> Tensor:
    """A copy of a tensor on another device of the group; to the same one, nothing is sent."""
    if source == target:
        return tensor
    group.message(tensor, source, target, kind)
    return to_device(tensor, group.devices[target])


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


def allreduce(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """The sum of tensors that lie on all devices of a group, on each of them.

    The first device adds them up, as in the first chapter.
    """
    total = tensors[0]
    for device, tensor in enumerate(tensors[1:], start=1):
        total = add(total, send(tensor, device, 0, kind, group))
    return [send(total, 0, device, kind, group) for device in range(len(tensors))]


def reduce_scatter(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """A slice of the sum of tensors, in one row, for each device: each adds up its own."""
    slices = [cut(tensor, len(tensors)) for tensor in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = add(total, send(slices[source][target], source, target, kind, group))
        totals.append(total)
    return totals


def all_gather(
    slices: Sequence[Tensor], shape: Sequence[int], kind: str, group: Group
) -> list[Tensor]:
    """The whole tensor on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        with tf.device(group.devices[target]):
            found.append(tf.reshape(tf.concat(parts, 0), shape))
    return found


def cut(tensor: Tensor, count: int) -> list[Tensor]:
    """So many slices of a tensor in one row, on its device; lengths differ by at most one."""
    with tf.device(tensor.device):
        row = tf.reshape(tensor, (-1,))
        return list(tf.split(row, shard_sizes(row.shape[0], count)))
