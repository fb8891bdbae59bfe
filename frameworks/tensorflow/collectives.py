"""All-reduce by any schedule, and by TensorFlow's collective."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import tensorflow as tf
from tensorflow import Tensor

from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_sizes
from frameworks.tensorflow.kernels import add, to_device

Grads = dict[str, Tensor]

KEYS = itertools.count(1)
"""By its key an operation finds its counterparts. Batch norm has larger keys."""

GROUPS: Final = 800_000
"""Groups of k devices have k added as their key. TensorFlow counts its own groups from 1."""


def flatten(params: Mapping[str, Tensor]) -> Tensor:
    """All tensors of a device as one vector."""
    with tf.device(next(iter(params.values())).device):
        return tf.concat([tf.reshape(param, (-1,)) for param in params.values()], 0)


def unflatten(vector: Tensor, like: Mapping[str, Tensor]) -> Grads:
    """The inverse of `flatten`, into the shapes of `like`."""
    with tf.device(vector.device):
        parts = tf.split(vector, [param.shape.num_elements() for param in like.values()])
        return {
            name: tf.reshape(part, param.shape)
            for (name, param), part in zip(like.items(), parts, strict=True)
        }


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    held, summed = [], []
    sizes = shard_sizes(data[0].shape.num_elements(), schedule.chunks)
    for tensor in data:
        with tf.device(tensor.device):
            held.append(tf.split(tf.reshape(tensor, (-1,)), sizes))
    execute(schedule, held, lambda chunk, i: to_device(chunk, data[i].device), add)
    for tensor, chunks in zip(data, held, strict=True):
        with tf.device(tensor.device):
            summed.append(tf.reshape(tf.concat(chunks, 0), tensor.shape))
    return summed


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by TensorFlow's collective operation."""
    # Within a function a tensor no longer knows where it came from.
    devices = [tensor.device for tensor in data]
    if tf.executing_eagerly():
        program: Callable[..., list[Tensor]] = in_one_program
        return program(data, devices)
    return reduce_together(data, devices)


def reduce_together(data: Sequence[Tensor], devices: Sequence[str]) -> list[Tensor]:
    """The sum of tensors on each of their devices; each operation waits for all the others."""
    summed, key = [], next(KEYS)
    before = tf.compat.v1.get_collection_ref("sums")  # of this program: NCCL needs one order
    for tensor, device in zip(data, devices, strict=True):
        with tf.device(device), tf.control_dependencies(before):
            summed.append(
                tf.raw_ops.CollectiveReduce(  # the second version waits forever
                    input=tensor,
                    group_size=len(devices),
                    group_key=GROUPS + len(devices),
                    instance_key=key,
                    merge_op="Add",
                    final_op="Id",
                    subdiv_offsets=[0],
                    communication_hint="nccl" if "GPU" in device else "auto",
                )
            )
    # Otherwise an operation whose sum is not used is left out, and the others wait forever.
    with tf.control_dependencies(summed):
        before[:] = [to_device(each, device) for each, device in zip(summed, devices, strict=True)]
    return list(before)


in_one_program = tf.function(reduce_together, autograph=False)
