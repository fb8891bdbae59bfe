"""JAX's devices: GPUs, or virtual devices that share the CPU."""

import os

import jax

from common.base.errors import RequestError


def devices(count: int | None, kind: str, threads: int) -> list[jax.Device]:
    """The `count` devices of `kind` ("auto", "cpu", "gpu"); None: every GPU, else 2 CPUs.

    Raises RequestError if there are fewer GPUs than asked for.
    """
    os.environ["NPROC"] = str(threads)  # read when the CPU client starts its threads
    jax.config.update("jax_num_cpu_devices", count or 2)
    # Every array keeps the dtype it came with: without it, float64 would become float32 unasked.
    jax.config.update("jax_enable_x64", True)
    # GPUs multiply float32 matrices with ten bits of the mantissa, unless told otherwise.
    jax.config.update("jax_default_matmul_precision", "highest")
    # Steps queued on virtual devices can lock each other out of the few threads they share.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    gpus = [] if kind == "cpu" else _gpus()
    if kind == "cpu" or (kind == "auto" and not gpus):
        return jax.devices("cpu")[: count or 2]
    if not gpus or (count or 1) > len(gpus):
        raise RequestError(
            f"JAX sees {len(gpus)} GPUs here, not {count or 'any'}: "
            "ask for fewer --devices or for --device-kind cpu"
        )
    return gpus[:count]


def synchronize(replicas: object) -> None:
    """Returns once all queued work on the replicas is done."""
    jax.block_until_ready(replicas)


def _gpus() -> list[jax.Device]:
    try:
        return jax.devices("gpu")
    except RuntimeError:  # there is no such platform
        return []
