"""What a rival's framework has to be told of GPUs, before it trains there."""

import importlib
import os
from typing import Any

from common.backends.loading import package
from common.base.errors import RunError


def pytorch() -> int:
    """The GPUs that PyTorch sees."""
    torch: Any = importlib.import_module("torch")
    count: int = torch.cuda.device_count()
    return count


def tensorflow() -> int:
    """The GPUs that TensorFlow sees; XLA is not to use TF32 there."""
    tf: Any = importlib.import_module("tensorflow")
    tf.config.experimental.enable_tensor_float_32_execution(False)
    return len(tf.config.list_physical_devices("GPU"))


def jax() -> int:
    """The GPUs that JAX sees; XLA is not to use TF32 there."""
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"
    found: Any = importlib.import_module("jax")
    return len(found.devices()) if found.default_backend() == "gpu" else 0


def mxnet() -> int:
    """The GPUs that MXNet sees."""
    mx: Any = importlib.import_module("mxnet")
    count: int = mx.context.num_gpus()
    return count


SEEN = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax, "mxnet": mxnet}


def require_gpu(framework: str) -> None:
    """Makes a framework ready for a rival. Raises RunError if it would train on the CPU."""
    package(framework)  # MXNet then finds CUDA's libraries
    if not SEEN[framework]():
        raise RunError(f"{framework} sees no GPU here")
