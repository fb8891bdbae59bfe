"""How processes on several hosts are joined in JAX, and how sums over them are added."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array as Tensor, numpy as jnp
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, PartitionSpec as P
from jaxlib import _jax

from common.backends.devices import Process
from frameworks.jax.hosts import stacked, whole


def join(process: Process) -> None:
    """Joins all processes of a run; each of them calls it before it makes its devices."""
    first = process.address(0)
    # By itself JAX takes SIGTERM for a notice that the machine will go, and does not end.
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_check_proxy_envs", False)
    os.environ.update(no_grpc_proxy=first)
    port = process.gather(free_port(first) if process.rank == 0 else 0)[0]
    jax.distributed.initialize(
        (meeting := f"{first}:{port}"),
        process.count,
        process.rank,
        cluster_detection_method="deactivate",  # a launcher's variables have been read
        coordinator_bind_address=meeting,
    )
    # By itself gloo takes the address that the host's name resolves to, which is often 127.0.0.1,
    # and JAX has no option for it.
    make, ours = _jax.make_gloo_tcp_collectives, process.address(process.rank)
    _jax.make_gloo_tcp_collectives = partial(make, hostname=ours)
    add_in_order()


def connect(devices: Sequence[jax.Device]) -> None:
    """Connects devices of all processes, and ends the service by which these psums each other.

    It would abort all processes as soon as one ends, and CPUs need it no longer.
    """
    with silence():
        for each in (jax.local_devices(backend="cpu"), devices):  # data of hosts go by CPUs
            parts = [jax.device_put(np.zeros(1), device) for device in each]
            jax.block_until_ready(whole(stacked(parts, "device")))
    if devices[0].platform == "cpu":
        jax.distributed.shutdown()


def free_port(address: str) -> int:
    """A port at which no process listens."""
    with socket.create_server((address, 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def silence() -> Iterator[None]:
    """Suppresses the lines that Gloo prints to standard output when it connects."""
    original = os.dup(1)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(original, 1)
        os.close(original)


def add_in_order() -> None:
    """From now on `lax.psum`, and its gradient, adds over processes in the order of the devices.

    So XLA adds in one process. Gloo begins each part of a sum with another device.
    """
    for primitive in primitives():
        mlir.register_lowering(primitive, lowered, platform="cpu")


def primitives() -> set[Any]:
    """The primitives of `lax.psum`, with and without types that vary over devices."""
    mesh, psums = AbstractMesh((2,), ("device",)), set()
    for typed in (False, True):
        total = partial(jax.lax.psum, axis_name="device")
        axis = P("device")
        mapped = jax.shard_map(total, mesh=mesh, in_specs=axis, out_specs=P(), check_vma=typed)
        (program,) = jax.make_jaxpr(mapped)(jax.ShapeDtypeStruct((2,), "float32")).eqns
        psums |= {equation.primitive for equation in program.params["jaxpr"].eqns}
    return psums


def lowered(context: Any, x: Any, *, axes: tuple[Any, ...], axis_index_groups: None = None) -> Any:
    """The compiled sum."""
    return mlir.lower_fun(partial(over, axes=axes), multiple_results=False)(context, x)


def over(x: Tensor, axes: tuple[Any, ...]) -> Tensor:
    """The sum over axes of the array, which have numbers as `vmap` gives them, and over devices."""
    named = tuple(axis for axis in axes if not isinstance(axis, int))
    if positions := tuple(axis for axis in axes if isinstance(axis, int)):
        x = x.sum(positions)
    return added(x, named) if named else x


def added(x: Tensor, axes: tuple[str, ...]) -> Tensor:
    """The sum over all devices: a reduce-scatter in their order, and an all-gather."""
    k = jax.lax.axis_size(axes)
    parts = jnp.pad(x.ravel(), (0, -x.size % k)).reshape(k, -1)
    first, *others = jax.lax.all_to_all(parts, axes, 0, 0, tiled=True)
    for other in others:
        first += other
    total: Tensor = jax.lax.all_gather(first, axes, tiled=True, to="invarying")
    return total[: x.size].reshape(x.shape)
