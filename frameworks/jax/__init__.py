"""The chapters in JAX. Importing this package does not load JAX."""

import os
import re
from importlib.util import find_spec

if __name__ == "jax":  # imported inside frameworks/
    raise SystemExit("jax is hidden here: cd .. && python -m frameworks.jax.scratch")

from common.backends.frameworks import Environment

# `common/backends/loading.py` explains each name.
DISTRIBUTIONS = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "flax", "optax")
PRELOAD = ("frameworks.jax.scratch", "frameworks.jax.concise")
ONE_THREAD_EACH = False

DEVICE_COUNT = r"(^|\s)--xla_force_host_platform_device_count=\S*"
"""XLA's flag for the number of simulated devices, set by every run."""

ENVIRONMENT = Environment(
    decided={"XLA_FLAGS": re.sub(DEVICE_COUNT, "", os.environ.get("XLA_FLAGS", "")).strip()},
    removed=(
        *("JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_NUM_CPU_DEVICES", "PJRT_NPROC"),
        *("JAX_LOCAL_DEVICE_IDS", "JAX_CPU_COLLECTIVES_IMPLEMENTATION"),
        *("JAX_SHARE_BINARY_BETWEEN_HOSTS", "JAX_ENABLE_RECOVERABILITY"),
        *("JAX_ENABLE_PREEMPTION_SERVICE", "JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION"),
        *("*_DEFAULT_FPMATH_MODE", "JAX_NUMPY_*", "JAX_NO_*", "JAX_TRANSFER_GUARD*"),
        *("JAX_ERROR_CHECKING_*", "JAX_ARRAY_GARBAGE_COLLECTION_GUARD", "JAX_AUTO_PCAST"),
        *("EAGER_CONSTANT_FOLDING", "FLAX_*", "NNX_*"),
    ),
    rounding=(
        *("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_OPTIMIZATION_LEVEL"),
        *("JAX_EXEC_TIME_*", "JAX_MEMORY_FITTING_*", "JAX_COMPILER_ENABLE_REMAT_PASS"),
        *("JAX_ENABLE_PGLE", "JAX_XLA_PROFILE_VERSION", "JAX_USE_SHARDY_PARTITIONER"),
        *("JAX_DISABLE_JIT", "JAX_USE_DIRECT_LINEARIZE", "JAX_SOFTMAX_CUSTOM_JVP"),
        *("JAX_SCAN3", "JAX_REMAT3", "JAX_CUSTOM_VJP3", "*DNN*_MAX_CPU_ISA"),
        *("CUBLAS_WORKSPACE_CONFIG", "TF_CUDNN_WORKSPACE_LIMIT_IN_MB"),
    ),
    breaking=("JAX_*", "PJRT_*", "TPU_LIBRARY_PATH", "XLA_*"),
    fatal=("XLA_FLAGS",),
    # XLA reads its flags when it is first asked for a compiler's options: 0.1 s of the processor.
    trial="""\
from contextlib import suppress
with suppress(ImportError):
    from jaxlib import xla_client
    xla_client.CompileOptions()
""",
)
"""The variables that JAX and Flax read; `docs/environment.md` explains each."""


def for_gpus() -> bool:
    """Whether the installed build is for GPUs, with what it needs of CUDA."""
    return any(find_spec(f"jax_cuda{v}_plugin") for v in (12, 13))


ENVIRONMENT.apply()
