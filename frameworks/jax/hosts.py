"""Collectives over the processes of several hosts: one mesh of all their devices."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import numpy as np
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.arrays import Array


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, which is in all processes that a launcher has started."""
    worker(process)
    process.gather(None)  # no process leaves while others may still receive from it
    jax.distributed.shutdown()  # where `connect` has not done so


def processes() -> int:
    """How many processes there are."""
    count: int = jax.process_count()
    return count


def rank() -> int:
    """Which of them this one is."""
    index: int = jax.process_index()
    return index


def all_devices(devices: Sequence[jax.Device]) -> list[jax.Device]:
    """The devices of all processes, by rank; these are the ones of this process."""
    if processes() == 1:
        return list(devices)
    ordered = sorted(jax.devices(devices[0].platform), key=lambda d: (d.process_index, d.id))
    by_rank = [[d for d in ordered if d.process_index == rank] for rank in range(processes())]
    return [device for local in by_rank for device in local[: len(devices)]]


def stacked(parts: Sequence[Tensor], axis: str) -> Tensor:
    """A global array (k, ...) from the shards on this process's devices."""
    mesh = Mesh(all_devices([part.device for part in parts]), (axis,))
    shape = (mesh.size, *parts[0].shape)
    layout = NamedSharding(mesh, P(axis))
    return jax.make_array_from_single_device_arrays(shape, layout, [part[None] for part in parts])


def mesh_of(tensor: Tensor) -> Mesh:
    """The devices that a tensor is divided over."""
    mesh: Mesh = tensor.sharding.mesh  # type: ignore[attr-defined]
    return mesh


def whole(tensor: Tensor) -> Tensor:
    """The same tensor, all of it on each device."""
    if tensor.is_fully_addressable or tensor.is_fully_replicated:
        return tensor
    full: Tensor = copied(tensor, NamedSharding(mesh_of(tensor), P()))
    return full


@partial(jax.jit, static_argnums=1)
def copied(tensor: Tensor, layout: NamedSharding) -> Tensor:
    """The tensor in another layout."""
    resharded: Tensor = jax.lax.with_sharding_constraint(tensor, layout)
    return resharded


def lay_out_shards(values: Array, layout: NamedSharding) -> Tensor:
    """A global array (k, ...) from the shards (m, ...) of this process's devices."""
    if processes() == 1:
        here: Tensor = jax.device_put(values, layout)
        return here
    shape = (layout.mesh.size, *values.shape[1:])
    parts: Tensor = jax.make_array_from_process_local_data(layout, values, shape)
    return parts


def examples_of_all(examples: int) -> int:
    """The number of examples over all processes, given this one's."""
    if processes() == 1:
        return examples
    return int(gathered(np.array([examples], np.float64)).sum())


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    devices = jax.local_devices(backend="cpu")
    parts = [jax.device_put(values, device) for device in devices]
    full = whole(stacked(parts, "device")).addressable_data(0)
    per_process: Array = np.asarray(full)[:: len(devices)]
    return per_process
