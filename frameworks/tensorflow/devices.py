"""TensorFlow's devices, by name: GPUs, or logical devices that share the CPU."""

import tensorflow as tf

from common.base.errors import RequestError


def devices(count: int | None, kind: str, threads: int) -> list[str]:
    """The `count` devices of `kind` ("auto", "cpu", "gpu"); None: every GPU, else 2 CPUs.

    Raises RequestError if there are fewer GPUs than asked for.
    """
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    # GPUs multiply float32 matrices with ten bits of the mantissa, unless told otherwise.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    gpus = [] if kind == "cpu" else tf.config.list_physical_devices("GPU")
    if kind == "cpu" or (kind == "auto" and not gpus):
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(count or 2)]
        tf.config.set_logical_device_configuration(cpu, logical)
        return [f"CPU:{index}" for index in range(count or 2)]
    if not gpus or (count or 1) > len(gpus):
        raise RequestError(
            f"TensorFlow sees {len(gpus)} GPUs here, not {count or 'any'}: "
            "ask for fewer --devices or for --device-kind cpu"
        )
    return [f"GPU:{index}" for index in range(count or len(gpus))]


def synchronize(replicas: object) -> None:
    """Returns once all queued work is done, on every device."""
    tf.test.experimental.sync_devices()
