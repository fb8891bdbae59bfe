"""TensorFlow."""

import os

DISTRIBUTIONS = ("tensorflow-cpu", "tensorflow", "keras")

# Read when TensorFlow is loaded: warnings and errors, without its notes about the processor.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
