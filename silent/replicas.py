"""Two replicas of TensorFlow, on two devices simulated on the CPU."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

VERSION = f"tensorflow {tf.__version__}, keras {keras.__version__}"


def two() -> tf.distribute.MirroredStrategy:
    """A strategy for two replicas. It has to be made before TensorFlow computes anything."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def run(strategy: tf.distribute.Strategy, step: Any, parts: Sequence[Any]) -> None:
    """Calls `step` in each replica with its part, in a graph."""
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )
    tf.function(strategy.run)(step, args=(values,))
