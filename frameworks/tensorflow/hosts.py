"""The processes of a run over hosts, and their collectives."""

from typing import Final, TypeAlias

import tensorflow as tf

from common.base.arrays import Array

Tensor: TypeAlias = tf.Tensor

GROUP: Final = 900_000
"""The group's key: those of `collectives` are smaller, those of batch norm larger."""

DTYPES: Final = ("float32", "float64")
"""The instance keys of these collectives."""


def processes() -> int:
    """How many processes there are."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    return 1 if resolver is None else len(resolver.cluster_spec().as_dict()["worker"])


def rank() -> int:
    """Which of them this one is."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    return 0 if resolver is None else int(resolver.task_id)


def all_gather(values: Tensor) -> Tensor:
    """All-gathers a tensor of one shape to the host: (processes, ...), by rank."""
    with tf.device("CPU:0"):
        count, flat = processes(), tf.reshape(values, (1, -1))
        if count == 1:
            return values[None]
        size = flat.shape[1]
        rows = tf.raw_ops.CollectiveGather(
            input=flat,
            group_size=count,
            group_key=GROUP,
            instance_key=len(DTYPES) * size + DTYPES.index(flat.dtype.name),
            shape=(count, size),
        )
        return tf.reshape(tf.gather(rows, by_rank(count)), (count, *values.shape))


def by_rank(count: int) -> list[int]:
    """Each rank's position in TensorFlow's order, which sorts numbers as text."""
    order = sorted(range(count), key=str)
    return [order.index(rank) for rank in range(count)]


in_one_program = tf.function(all_gather, autograph=False)


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    tensor = tf.constant(values)
    program = in_one_program.get_concrete_function(tensor)  # by a call, it warns of a fourth shape
    per_process: Array = program(tensor).numpy()
    return per_process
