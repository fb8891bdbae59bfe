"""TensorFlow's devices, by name: GPUs, or logical devices that share the CPU."""

from collections.abc import Sequence

import tensorflow as tf

from common.backends.interface import DeviceRequest, Devices, Process
from common.base.machine import native_errors_held_back


def configure(request: DeviceRequest) -> None:
    """Makes this process's devices. Raises RequestError if GPUs lack."""
    tf.config.threading.set_intra_op_parallelism_threads(request.threads)
    tf.config.threading.set_inter_op_parallelism_threads(request.threads)
    # GPUs multiply float32 matrices with ten bits of the mantissa by default.
    tf.config.experimental.enable_tensor_float_32_execution(request.tf32)
    with native_errors_held_back():  # of a driver that is not there
        gpus = tf.config.list_physical_devices("GPU")
    request.require(len(gpus), "TensorFlow")
    use_gpus(gpus[: request.count] if request.kind == "gpu" else [], request.deterministic)
    if request.kind == "cpu":
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(request.count)]
        tf.config.set_logical_device_configuration(cpu, logical)


def use_gpus(gpus: Sequence[tf.config.PhysicalDevice], deterministic: bool) -> None:
    """Uses these GPUs, as they are needed; by itself it takes the whole memory of all there are."""
    tf.config.set_visible_devices(gpus, "GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus and deterministic:
        tf.config.experimental.enable_op_determinism()


def devices(process: Process, request: DeviceRequest) -> Devices[str]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    if process.count > 1:  # they have been made for the strategy
        local = tf.distribute.get_strategy().extended.worker_devices
        return Devices("gpu" if "GPU" in local[0] else "cpu", list(local))
    configure(request)
    kind = request.kind
    return Devices(kind, [f"{kind.upper()}:{index}" for index in range(request.count)])


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device."""
    if not tf.distribute.has_strategy():
        tf.test.experimental.sync_devices()
        return
    # That would ask the other processes, too, which do not serve this one.
    for name in tf.distribute.get_strategy().extended.worker_devices:
        with tf.device(name):
            tf.raw_ops.SyncDevice()
