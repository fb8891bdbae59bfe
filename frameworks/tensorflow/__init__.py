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

# Read when TensorFlow is loaded: errors alone. In float64 it would warn at every step of what
# oneDNN leaves to other code.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
