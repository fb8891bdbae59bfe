"""The processes of a run over hosts: one mesh of all their devices."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import jax
from jax import Array as Tensor
from jax.experimental.multihost_utils import process_allgather
from jax.sharding import NamedSharding, PartitionSpec as P

from common.backends.frameworks import launched
from common.backends.interface import ALONE, DeviceRequest, Process
from common.base.arrays import Array

HEARTBEAT: Final = 10
"""Seconds without a heartbeat after which a process counts as lost, and all end."""


def launch(worker: Callable[[Process], None], request: DeviceRequest, options: object) -> None:
    """Calls `worker` here, joined with all processes that a launcher has started, if any."""
    rank, count = launched("jax", "concise")
    if count == 1:
        worker(ALONE)
        return
    # By itself JAX takes SIGTERM for a notice that the machine will go, and does not end.
    jax.config.update("jax_enable_preemption_service", False)
    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize(None, count, rank, heartbeat_timeout_seconds=HEARTBEAT)
    else:  # JAX finds its launcher by itself
        jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT)
    worker(Process(rank, count, engine="jax.distributed", gathered=gathered))
    jax.distributed.shutdown()


def processes() -> int:
    """How many processes there are."""
    count: int = jax.process_count()
    return count


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    per_process: Array = process_allgather(values)
    return per_process.reshape(processes(), *values.shape)


def all_devices(devices: Sequence[jax.Device]) -> list[jax.Device]:
    """The devices of all processes, by rank; these are the ones of this process."""
    if processes() == 1:
        return list(devices)
    return sorted(jax.devices(devices[0].platform), key=lambda d: (d.process_index, d.id))


def whole(tensor: Tensor) -> Tensor:
    """The same tensor, all of it on each device."""
    if tensor.is_fully_addressable or tensor.is_fully_replicated:
        return tensor
    layout = NamedSharding(tensor.sharding.mesh, P())  # type: ignore[attr-defined]
    full: Tensor = copied(tensor, layout)
    return full


@partial(jax.jit, static_argnums=1)
def copied(tensor: Tensor, layout: NamedSharding) -> Tensor:
    """The tensor in another layout."""
    resharded: Tensor = jax.lax.with_sharding_constraint(tensor, layout)
    return resharded
