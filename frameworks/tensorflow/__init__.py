"""The chapters in TensorFlow. Importing this package does not load TensorFlow."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

    from common.interface import Scratch
    from frameworks.tensorflow import scratch

    # The type checker proves that the chapter keeps the promises of the interface.
    proof: Scratch[str, tf.Tensor] = scratch

DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "keras")
"""The packages whose versions a record names."""

# Read when TensorFlow is loaded: warnings and errors, without its notes about the processor.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
