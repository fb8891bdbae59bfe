"""How processes on several hosts are joined in JAX: they find each other, and connect."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import jax
import numpy as np
from jaxlib import _jax

from common.backends.devices import Process
from frameworks.jax.addition import add_in_order
from frameworks.jax.hosts import stacked, whole

LOOPBACK: Final = "127.0.0.1"


def join(process: Process) -> None:
    """Joins all processes of a run; each of them calls it before it makes its devices."""
    ours = process.addresses[process.rank] if process.addresses else LOOPBACK
    first = process.addresses[0] if process.addresses else LOOPBACK
    # By itself JAX takes SIGTERM for a notice that the machine will go, and does not end.
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_check_proxy_envs", False)
    os.environ.update(no_grpc_proxy=first)
    port = process.gather(free_port(first) if process.rank == 0 else 0)[0]
    jax.distributed.initialize(
        (meeting := f"[{first}]:{port}" if ":" in first else f"{first}:{port}"),
        process.count,
        process.rank,
        cluster_detection_method="deactivate",  # a launcher's variables have been read
        coordinator_bind_address=meeting,
    )
    # By itself gloo takes the address that the host's name resolves to, which is often 127.0.0.1,
    # and JAX has no option for it.
    _jax.make_gloo_tcp_collectives = partial(_jax.make_gloo_tcp_collectives, hostname=ours)
    add_in_order()


def connect(devices: Sequence[jax.Device]) -> None:
    """Connects devices of all processes: from now on they need no service.

    The service by which processes find each other would abort all of them as soon as the first one
    has ended, and asks each one to wait for all at its end. CPUs have no use for it once connected.
    """
    with silence():
        for each in (jax.local_devices(backend="cpu"), devices):  # data of hosts go by CPUs
            parts = [jax.device_put(np.zeros(1), device) for device in each]
            jax.block_until_ready(whole(stacked(parts, "device")))
    if devices[0].platform == "cpu":
        jax.distributed.shutdown()


def free_port(address: str) -> int:
    """A port at which no process listens."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def silence() -> Iterator[None]:
    """Holds back what gloo prints to standard output when it connects."""
    original = os.dup(1)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(original, 1)
        os.close(original)
