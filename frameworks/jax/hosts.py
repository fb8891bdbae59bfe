"""What processes on several hosts have to do with each other: one mesh of all their devices."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import jax
import numpy as np
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.arrays import Array, Weights
from common.parallel.shards import diverged

T = TypeVar("T")


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, which is in all processes that a launcher has started."""
    worker(process)
    process.gather(None)  # nobody leaves while others may still receive from it
    jax.distributed.shutdown()  # where `connect` has not done so


def processes() -> int:
    """How many processes there are."""
    count: int = jax.process_count()
    return count


def everywhere(devices: Sequence[object]) -> int:
    """How many devices all processes have, of which this one has these."""
    return processes() * len(devices)


def own(parts: Sequence[T]) -> Sequence[T]:
    """The share of this process in what is there for each device, in the order of all devices."""
    share, rank = len(parts) // processes(), jax.process_index()
    return parts[rank * share : (rank + 1) * share]


def all_devices(devices: Sequence[jax.Device]) -> list[jax.Device]:
    """The devices of all processes, by rank; these are the ones of this process."""
    if processes() == 1:
        return list(devices)
    found = sorted(jax.devices(devices[0].platform), key=lambda d: (d.process_index, d.id))
    of_each = [[d for d in found if d.process_index == rank] for rank in range(processes())]
    return [device for each in of_each for device in each[: len(devices)]]


def stacked(parts: Sequence[Tensor], axis: str) -> Tensor:
    """What lies on this process's devices as a part of (k, ...), which is divided over them all."""
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
    found: Tensor = copied(tensor, NamedSharding(mesh_of(tensor), P()))
    return found


@partial(jax.jit, static_argnums=1)
def copied(tensor: Tensor, layout: NamedSharding) -> Tensor:
    """The tensor in another layout."""
    found: Tensor = jax.lax.with_sharding_constraint(tensor, layout)
    return found


def laid_out(values: Array, layout: NamedSharding) -> Tensor:
    """An array that all processes have, divided as the layout says."""
    if processes() == 1:
        found: Tensor = jax.device_put(values, layout)
        return found
    # Here device_put would first compare what all processes have.
    return jax.make_array_from_callback(values.shape, layout, lambda index: values[index])


def gathered(parts: Sequence[Tensor]) -> Tensor:
    """What all devices have (k, ...), on this process's first device."""
    return whole(stacked(parts, "device")).addressable_data(0)


def everyones(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The tensors of all devices, on the first of this process's; all are of one shape."""
    return tensors if processes() == 1 else list(gathered(tensors))


def of_each_process(values: Array) -> Array:
    """What all processes have as `values`, by rank: (processes, ...)."""
    devices = jax.local_devices(backend="cpu")
    found = gathered([jax.device_put(values, device) for device in devices])
    return np.asarray(found)[:: len(devices)]


def joined(rows: Array) -> Array:
    """What all processes have as rows (n, ...), one after the other; each has its own n."""
    if processes() == 1:
        return rows
    counts = of_each_process(np.array(len(rows))).tolist()
    padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = of_each_process(padded)
    return np.concatenate([each[:count] for each, count in zip(found, counts, strict=True)])


def same_on_every_host(weights: Weights) -> Weights:
    """These weights, once all processes are known to have the same bit for bit.

    Digests travel instead of weights. Raises RunError that names the replica and the tensor.
    """
    if processes() == 1:
        return weights
    digests = [hashlib.sha256(values.tobytes()).digest()[:8] for values in weights.values()]
    found = of_each_process(np.frombuffer(b"".join(digests), np.int64))
    for rank, theirs in enumerate(found):
        for name, same in zip(weights, (theirs == found[0]).tolist(), strict=True):
            if not same:
                raise diverged(name, rank * len(jax.local_devices()))
    return weights
