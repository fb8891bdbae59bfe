"""The chapters in TensorFlow. Importing this package does not load TensorFlow."""

import os
from importlib.util import find_spec

if __name__ == "tensorflow":  # imported inside frameworks/
    raise SystemExit("tensorflow is hidden here: cd .. && python -m frameworks.tensorflow.scratch")

from common.backends.frameworks import Environment

# `common/backends/loading.py` explains each name.
DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "keras")
PRELOAD = ("frameworks.tensorflow.scratch", "frameworks.tensorflow.concise")
ONE_THREAD_EACH = False
ENVIRONMENT = Environment(
    # A file called keras.json would decide Keras's layouts and numbers: there can be none here.
    decided={"KERAS_BACKEND": "tensorflow", "KERAS_HOME": f"{os.devnull}/none"},
    removed=(
        *("KERAS_MAX_*", "KERAS_NNX_ENABLED", "TF_USE_LEGACY_KERAS", "TF_XLA_FLAGS"),
        *("TF_FUNCTION_JIT_COMPILE_DEFAULT", "TF_ENABLED_DEVICE_TYPES", "DTENSOR_JOB*"),
        *("*_FPMATH_MODE", "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"),
    ),
    # By itself TensorFlow warns at every step in float64, and takes oneDNN, with which a step of
    # LeNet takes half the time, only on processors with AVX-512 VNNI.
    defaults={"TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "1"},
    rounding=(
        *("TF_ENABLE_ONEDNN_OPTS", "TF_ENABLE_ZENDNN_OPTS", "*DNN*_CPU_ISA*"),
        *("TF_DETERMINISTIC_OPS", "TENSORFLOW_USE_CUSTOM_CONTRACTION_KERNEL"),
        *("TF_USE_DEEP_CONV2D", "DTENSOR_*COMBINE*", "CUBLAS_WORKSPACE_CONFIG"),
        *("TF_CUDNN_DISABLE_*", "TF_CUDNN_USE_AUTOTUNE", "TF_MATMUL_AUTOTUNE_ENABLE"),
        "TF_USE_CUBLASLT",
    ),
    breaking=(
        *("DTENSOR_*", "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "TF_GPU_ALLOCATOR"),
        *("TF_FORWARD_COMPATIBILITY_*", "TF_PER_DEVICE_MEMORY_LIMIT_MB", "TF_PLUGGABLE_*"),
        "TF_USE_MODULAR_FILESYSTEM",
    ),
    fatal=(
        *("TF_DETERMINISTIC_OPS", "TF_MKL_*", "TF_ONEDNN_THREADPOOL_USE_CALLER_THREAD"),
        "TF_ONEDNN_USE_SYSTEM_ALLOCATOR",
    ),
    # A convolution by oneDNN and a loss ask for all of them; its banner is suppressed.
    trial="""
import os, sys
own = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import tensorflow as tf
except ImportError:  # to load it says so
    sys.exit()
os.dup2(own, 2)
X = tf.nn.conv2d(tf.ones((2, 3, 3, 1)), tf.ones((3, 3, 1, 2)), strides=1, padding="VALID")
tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros(2, tf.int32), X[:, 0, 0])
""",
)
"""The variables that TensorFlow and Keras read; `docs/environment.md` explains each."""


def for_gpus() -> bool:
    """Whether the installed build is for GPUs, with what it needs of CUDA."""
    return find_spec("nvidia") is not None


ENVIRONMENT.apply()
