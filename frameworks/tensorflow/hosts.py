"""The processes of a run over hosts, and their collectives."""

import os
from collections.abc import Callable
from typing import Final, TypeAlias

import tensorflow as tf

from common.backends.frameworks import launched
from common.backends.interface import ALONE, DeviceRequest, Process
from common.base.arrays import Array
from common.base.errors import RequestError
from frameworks.tensorflow.devices import configure

Tensor: TypeAlias = tf.Tensor

GROUP: Final = 900_000
"""The group's key: those of `collectives` are smaller, those of batch norm larger."""

DTYPES: Final = ("float32", "float64")
"""The instance keys of these collectives."""


def launch(worker: Callable[[Process], None], request: DeviceRequest, options: object) -> None:
    """Calls `worker` here, in the scope of a strategy over all processes if there are several."""
    rank, count = launched("tensorflow", "concise")
    if count == 1:
        worker(ALONE)
        return
    process = Process(rank, count, engine="MultiWorkerMirroredStrategy", gathered=gathered)
    here = request.on_each(process)
    configure(here)
    if here.kind == "cpu" and here.count > 1:
        what = f"TensorFlow has one CPU in each of {count} processes"
        raise RequestError(f"{what}: leave --devices out, or start more processes")
    resolver = cluster(here.count if here.kind == "gpu" else 0)
    with tf.distribute.MultiWorkerMirroredStrategy(resolver).scope():
        worker(process)
    process.any(False)  # a process that left earlier would be missed by the others


def cluster(gpus: int) -> tf.distribute.cluster_resolver.ClusterResolver:
    """All processes, as TF_CONFIG or Slurm says; each has so many GPUs."""
    resolvers = tf.distribute.cluster_resolver
    if "TF_CONFIG" in os.environ:
        return resolvers.TFConfigClusterResolver()
    # By itself it asks a driver how many GPUs there are; each task gets one entry, GPU or not.
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    slurm = resolvers.SlurmClusterResolver(gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False)
    hosts, (job, rank) = slurm.cluster_spec(), slurm.get_task_info()
    return resolvers.SimpleClusterResolver(
        hosts, task_type=job, task_id=rank, num_accelerators={"GPU": gpus}, rpc_layer="grpc"
    )


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
