"""The strategy of a run: over the devices of one process, or over those of all processes."""

from collections.abc import Sequence

import tensorflow as tf


def mirrored(devices: Sequence[str]) -> tf.distribute.Strategy:
    """The strategy over all processes, if there is one, else one over these devices."""
    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    # NCCL is for GPUs only; the other one adds up in the order of the devices.
    gpus = len(devices) > 1 and devices[0].startswith("GPU")
    ops = tf.distribute.NcclAllReduce() if gpus else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
