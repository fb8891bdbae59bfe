"""Allreduce by any schedule, and by TensorFlow's own collective."""

from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow import Tensor

from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_sizes

Grads = dict[str, Tensor]


def allreduce_by(algorithm: str, grads: Sequence[Grads]) -> list[Grads]:
    """The sum of k devices' gradients, on each of them; they travel as one vector."""
    vectors = [flatten(grad) for grad in grads]
    if algorithm == "native":
        summed = native(vectors)
    else:
        summed = by_schedule(SCHEDULES[algorithm](len(vectors)), vectors)
    return [unflatten(vector, grad) for vector, grad in zip(summed, grads, strict=True)]


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
    """The sum of vectors that lie on k devices, on each of them, moved as the schedule says."""

    def receive(chunk: Tensor, i: int) -> Tensor:
        with tf.device(data[i].device):
            return tf.identity(chunk)

    def add(ours: Tensor, theirs: Tensor) -> Tensor:
        with tf.device(ours.device):
            # A sum alone would be merged with others, and they added up in another order.
            return tf.raw_ops.Snapshot(input=ours + theirs)

    held, summed = [], []
    for vector in data:
        with tf.device(vector.device):
            held.append(tf.split(vector, shard_sizes(vector.shape[0], schedule.chunks)))
    execute(schedule, held, receive, add)
    for vector, chunks in zip(data, held, strict=True):
        with tf.device(vector.device):
            summed.append(tf.concat(chunks, 0))
    return summed


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by TensorFlow's collective operation."""
    # Within a function a tensor no longer knows where it came from.
    summed: list[Tensor] = reduce_together(data, [tensor.device for tensor in data])
    return summed


@tf.function(autograph=False)
def reduce_together(data: Sequence[Tensor], devices: Sequence[str]) -> list[Tensor]:
    """The sum of vectors on each of their devices; each operation waits for all the others."""
    summed = []
    for tensor, device in zip(data, devices, strict=True):
        with tf.device(device):
            summed.append(
                tf.raw_ops.CollectiveReduce(  # the second version waits for ever
                    input=tensor,
                    group_size=len(devices),
                    group_key=len(devices),
                    # Another one for another length or dtype.
                    instance_key=2 * tensor.shape[0] + (tensor.dtype == tf.float64),
                    merge_op="Add",
                    final_op="Id",
                    subdiv_offsets=[0],
                    communication_hint="nccl" if "GPU" in device else "auto",
                )
            )
    return summed
