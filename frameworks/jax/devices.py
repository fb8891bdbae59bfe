"""JAX's devices: GPUs, or simulated devices on the CPU."""

import logging
import os

import jax

from common.backends.interface import DeviceRequest, Devices, Process
from frameworks.jax import for_gpus


def devices(process: Process, request: DeviceRequest) -> Devices[jax.Device]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    # Read when the CPU client starts its threads, no fewer than it has devices.
    os.environ["NPROC"] = str(request.threads)
    jax.config.update("jax_num_cpu_devices", request.count)
    # Every array keeps the dtype it came with: without it, float64 would become float32 unasked.
    jax.config.update("jax_enable_x64", True)
    # GPUs multiply float32 matrices with ten bits of the mantissa by default.
    precision = "tensorfloat32" if request.tf32 else "highest"
    jax.config.update("jax_default_matmul_precision", precision)
    prepare_gpus(request)
    # Steps queued on simulated devices can starve each other of the few threads.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    gpus = _gpus() if request.kind == "gpu" else []
    request.require(len(gpus), "JAX")
    found = gpus or jax.local_devices(backend="cpu")
    return Devices(request.kind, found[: request.count])


def synchronize(replicas: object) -> None:
    """Returns once all queued work on the replicas is done."""
    jax.block_until_ready(replicas)


def prepare_gpus(request: DeviceRequest) -> None:
    """Sets options for GPUs, which are read when JAX looks for devices."""
    # A driver is asked for GPUs only where they are wanted and can be used.
    if request.kind == "cpu" or not for_gpus():
        jax.config.update("jax_platforms", "cpu")
        return
    handler = logging.StreamHandler()
    handler.addFilter(in_one_line)
    logging.getLogger("jax").addHandler(handler)
    # By itself it takes three quarters of a GPU's memory at once.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # By itself XLA times kernels of its own against each other for every product of matrices: on an
    # H200 the first epoch of LeNet took 39 s, and takes 5 with cuBLAS's; later ones take as long.
    flags = ["--xla_gpu_enable_triton_gemm=false", os.environ.get("XLA_FLAGS", "")]
    if request.deterministic:
        flags.append("--xla_gpu_deterministic_ops=true")
    os.environ["XLA_FLAGS"] = " ".join(filter(None, flags))
    # By itself it takes some memory of all there are.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(request.count))))
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible.split(",")[: request.count])


def in_one_line(record: logging.LogRecord) -> bool:
    """Lets JAX say why it can use no GPU, and not where in its code it gives up."""
    if record.exc_info:
        record.msg, record.args = f"JAX can use no GPU: {record.exc_info[1]}", ()
        record.exc_info = None
    return record.levelno >= logging.ERROR or not record.name.endswith("xla_bridge")


def _gpus() -> list[jax.Device]:
    try:
        gpus: list[jax.Device] = jax.local_devices(backend="gpu")
        return gpus
    except RuntimeError:  # there is no such platform
        return []
