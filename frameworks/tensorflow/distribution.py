"""The strategy of a run: over the devices of one process, or over those of all processes."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

from common.backends.devices import ALONE, DeviceRequest, Process
from common.chapters.concise import ConciseOptions
from frameworks.tensorflow.devices import JOB, configure, in_cluster
from frameworks.tensorflow.hosts import cluster_of


class AllHosts(tf.distribute.MultiWorkerMirroredStrategy):  # type: ignore[misc]
    """TensorFlow's strategy for several processes, with chosen devices, not one CPU or all GPUs."""

    def __init__(self, cluster: tf.train.ClusterSpec, rank: int, devices: Sequence[str]) -> None:
        """Joins the other processes; returns once all are there."""
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster, task_type=JOB, task_id=rank, rpc_layer="grpc"
        )
        tf.distribute.Strategy.__init__(self, OnDevices(self, resolver, devices))


class OnDevices(CollectiveAllReduceExtended):  # type: ignore[misc]
    """Options of the strategy for several processes."""

    def __init__(
        self,
        strategy: AllHosts,
        resolver: tf.distribute.cluster_resolver.ClusterResolver,
        devices: Sequence[str],
    ) -> None:
        """Starts the server through which the processes communicate."""
        self._told = tuple(devices)
        super().__init__(strategy, resolver, tf.distribute.experimental.CommunicationOptions())

    def _initialize_local_devices(self, *_: Any) -> tuple[tuple[str, ...], str]:
        return self._told, tf.DeviceSpec.from_string(self._told[0]).device_type


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: ConciseOptions,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, in the scope of a strategy over all processes if there are several."""
    if process.count == 1:
        worker(process)
        return
    kind, local = configure(process, request)
    devices = in_cluster(kind, len(local), [process.rank])
    with AllHosts(cluster_of(process), process.rank, devices).scope():
        worker(process)
    # A process that left earlier would be missed by the others.
    process.gather("through")


def mirrored(devices: Sequence[str]) -> tf.distribute.Strategy:
    """The strategy over all processes, if there is one, else one over these devices."""
    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    # NCCL is for GPUs only; the other one adds up in the order of the devices.
    gpus = len(devices) > 1 and devices[0].startswith("GPU")
    ops = tf.distribute.NcclAllReduce() if gpus else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
