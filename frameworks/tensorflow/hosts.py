"""Rendezvous of processes on several hosts, and their collectives.

The chapter from scratch has one client, to which the other processes lend their devices; the
concise chapter has a strategy of which each process is a part. Both talk by gRPC.
"""

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import tensorflow as tf

from common.backends.devices import ALONE, DeviceRequest, Process, list_of_one
from common.base.arrays import Array
from common.base.signals import stoppable
from common.chapters.scratch import ScratchOptions
from frameworks.tensorflow.devices import JOB, configure

Tensor: TypeAlias = tf.Tensor

GROUP: Final = 900_000
"""The group's key: those of `collectives` are smaller, those of batch norm larger."""

DTYPES: Final = ("float32", "float64")
"""The instance keys of these collectives."""


def cluster_of(process: Process) -> tf.train.ClusterSpec:
    """Where each process will listen; the system chooses the ports."""
    # TensorFlow cannot choose a port and report it, so it takes this one after its release.
    with socket.socket() as chosen:
        chosen.bind((process.address(process.rank), 0))
        ports = process.gather(chosen.getsockname()[1])
    hosts = [process.address(rank) for rank in range(process.count)]
    os.environ.update(no_grpc_proxy=",".join(hosts))  # no proxy leads to them
    listening = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    return tf.train.ClusterSpec({JOB: listening})


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: ScratchOptions,
    process: Process = ALONE,
) -> None:
    """Calls `worker` in the first process; the others lend their devices to it."""
    if process.count == 1:
        worker(process)
        return
    kind, local = configure(process, request)
    cluster = cluster_of(process)
    # TensorFlow's collective waits forever for a client that takes part in it.
    native = options.allreduce == "native"
    if process.rank or native:
        server = serve(cluster, process, request.threads, kind, local)
    process.gather("served")
    if process.rank:
        lend(process, server)
        return
    # Otherwise a variable is assigned some time after the client returns, maybe in a step.
    os.environ["TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE"] = "false"
    client = {} if native else {"job_name": JOB, "task_index": 0}
    tf.config.experimental_connect_to_cluster(cluster, protocol="grpc", **client)
    # The others have nothing to say: the process that started them hears their signals.
    try:
        worker(replace(process, gather=list_of_one))
    finally:  # also if it was asked to stop, which all wait for
        process.gather("through")


def serve(
    cluster: tf.train.ClusterSpec, process: Process, threads: int, kind: str, local: Sequence[int]
) -> tf.distribute.Server:
    """Lets a client compute on the devices of this process, which ends with it."""
    cpus, gpus = (len(local), []) if kind == "cpu" else (1, local)
    config = tf.compat.v1.ConfigProto(
        device_count={"CPU": cpus, "GPU": len(gpus)},
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=threads,
        gpu_options={"visible_device_list": ",".join(map(str, gpus)), "allow_growth": True},
        experimental={"collective_group_leader": f"/job:{JOB}/replica:0/task:0"},
    )
    return tf.distribute.Server(cluster, JOB, process.rank, protocol="grpc", config=config)


def lend(process: Process, server: tf.distribute.Server) -> None:
    """Returns once the first process is through; until then, `server` is at its service."""
    with stoppable(patient=True):  # it is the first one that ends in order
        process.gather("through")


def processes() -> int:
    """The number of processes of a run: 1 for a client that has all devices."""
    resolver = tf.distribute.get_strategy().cluster_resolver
    return 1 if resolver is None else int(resolver.cluster_spec().num_tasks(JOB))


def rank() -> int:
    """Which of them this process is."""
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
    per_process: Array = in_one_program(tf.constant(values)).numpy()
    return per_process
