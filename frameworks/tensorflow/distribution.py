"""The strategy of a run: over the devices of one process, or over those of all processes."""

import os
from collections.abc import Callable, Sequence

import tensorflow as tf

from common.backends.frameworks import launched
from common.backends.interface import ALONE, DeviceRequest, Process
from common.base.errors import RequestError
from common.chapters.concise import ConciseOptions
from frameworks.tensorflow.devices import configure
from frameworks.tensorflow.hosts import gathered


def launch(
    worker: Callable[[Process], None], request: DeviceRequest, options: ConciseOptions
) -> None:
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


def mirrored(devices: Sequence[str]) -> tf.distribute.Strategy:
    """The strategy over all processes, if there is one, else one over these devices."""
    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    # NCCL is for GPUs only; the other one adds up in the order of the devices.
    gpus = len(devices) > 1 and devices[0].startswith("GPU")
    ops = tf.distribute.NcclAllReduce() if gpus else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
