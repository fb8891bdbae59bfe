"""TensorFlow's devices, by name: GPUs, or logical devices that share the CPU."""

import tensorflow as tf

from common.backends.devices import DeviceRequest, Devices, Process


def devices(process: Process, request: DeviceRequest) -> Devices[str]:
    """The devices that are asked for. Raises RequestError if there are fewer GPUs."""
    tf.config.threading.set_intra_op_parallelism_threads(request.threads)
    tf.config.threading.set_inter_op_parallelism_threads(request.threads)
    # GPUs multiply float32 matrices with ten bits of the mantissa, unless told otherwise.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    gpus = [] if request.kind == "cpu" else tf.config.list_physical_devices("GPU")
    kind, count = request.settled(len(gpus), "TensorFlow")
    if kind == "cpu":
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        tf.config.set_logical_device_configuration(cpu, logical)
    return Devices.of(kind, [f"{kind.upper()}:{index}" for index in range(count)], process)


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device."""
    tf.test.experimental.sync_devices()
