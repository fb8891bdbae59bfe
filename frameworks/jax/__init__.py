"""The chapters in JAX. Importing this package does not load JAX."""

import os
import re

from common.backends.environment import Environment

DISTRIBUTIONS = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "flax", "optax")
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.jax.scratch", "frameworks.jax.concise")
"""Modules that all processes need. They are forked from one that has imported these."""

ENGINES = {"scratch": "jax.distributed", "concise": "jax.distributed"}
"""What joins the processes of a run over several hosts."""

TRANSPORTS = {"cpu": "Gloo", "gpu": "NCCL"}
"""By the kind of devices: how the processes exchange numbers."""

ONE_THREAD_EACH = False
"""Virtual devices may use all threads."""

XLA_FLAGS = re.sub(
    r"(^|\s)--xla_force_host_platform_device_count=\S*", "", os.environ.get("XLA_FLAGS", "")
).strip()
"""XLA's flags except for the number of virtual devices, which every run decides."""

REMOVED = (
    # Which devices compute, and with how many threads.
    *("JAX_PLATFORM_NAME", "JAX_DEFAULT_DEVICE", "JAX_NUM_CPU_DEVICES", "PJRT_NPROC"),
    *("JAX_LOCAL_DEVICE_IDS", "JAX_CPU_COLLECTIVES_IMPLEMENTATION"),
    # With the first, processes on several hosts wait for a program that no process sends.
    *("JAX_SHARE_BINARY_BETWEEN_HOSTS", "JAX_ENABLE_RECOVERABILITY"),
    "JAX_ENABLE_PREEMPTION_SERVICE",
    # With how many bits.
    *("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION"),
    *("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"),
    # What programmers forbid their own code.
    *("JAX_NUMPY_DTYPE_PROMOTION", "JAX_NUMPY_RANK_PROMOTION", "JAX_NO_TRACING"),
    *("JAX_NO_EXECUTION", "JAX_TRANSFER_GUARD", "JAX_TRANSFER_GUARD_HOST_TO_DEVICE"),
    *("JAX_TRANSFER_GUARD_DEVICE_TO_HOST", "JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE"),
    *("JAX_ERROR_CHECKING_BEHAVIOR_NAN", "JAX_ERROR_CHECKING_BEHAVIOR_DIVIDE"),
    *("JAX_ERROR_CHECKING_BEHAVIOR_OOB", "JAX_ARRAY_GARBAGE_COLLECTION_GUARD"),
    # What the wrappers are written for: shard_map's types, and how Flax keeps a net.
    *("JAX_AUTO_PCAST", "EAGER_CONSTANT_FOLDING"),
    *("FLAX_HIJAX_VARIABLE", "FLAX_USE_FLAXLIB", "FLAX_ARRAY_REF", "FLAX_PYTREE_MODULE"),
    *("NNX_GRAPH_MODE", "NNX_GRAPH_UPDATES"),
)
"""What a run decides otherwise, or does better without."""

ENVIRONMENT = Environment(
    decided={"XLA_FLAGS": XLA_FLAGS or None, **dict.fromkeys(REMOVED)},
    rounding=(
        # How the compiler makes a program faster.
        *("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS", "JAX_OPTIMIZATION_LEVEL"),
        *("JAX_EXEC_TIME_OPTIMIZATION_EFFORT", "JAX_MEMORY_FITTING_EFFORT"),
        *("JAX_MEMORY_FITTING_LEVEL", "JAX_COMPILER_ENABLE_REMAT_PASS", "JAX_ENABLE_PGLE"),
        *("JAX_XLA_PROFILE_VERSION", "JAX_USE_SHARDY_PARTITIONER"),
        # What the program is.
        *("JAX_DISABLE_JIT", "JAX_USE_DIRECT_LINEARIZE", "JAX_SOFTMAX_CUSTOM_JVP"),
        *("JAX_SCAN3", "JAX_REMAT3", "JAX_CUSTOM_VJP3"),
        # Products of matrices: XLA takes those of oneDNN, and on GPUs those of NVIDIA.
        *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"),
        *("CUBLAS_WORKSPACE_CONFIG", "TF_CUDNN_WORKSPACE_LIMIT_IN_MB"),
    ),
    breaking=(
        # Where devices are looked for, and their memory.
        *("JAX_PLATFORMS", "PJRT_NAMES_AND_LIBRARY_PATHS", "JAX_PJRT_CLIENT_CREATE_OPTIONS"),
        *("JAX_FORCE_TPU_INIT", "TPU_LIBRARY_PATH", "XLA_PYTHON_CLIENT_ALLOCATOR"),
        *("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"),
        # How processes on several hosts meet.
        *("JAX_PARTITION_INDEX", "JAX_SLICE_INDEX"),
        "JAX_CPU_GET_LOCAL_TOPOLOGY_TIMEOUT_MINUTES",
        "JAX_CPU_GET_GLOBAL_TOPOLOGY_TIMEOUT_MINUTES",
        # Checks for a person who looks for a fault.
        *("JAX_DEBUG_NANS", "JAX_DEBUG_INFS", "JAX_ENABLE_CHECKS", "JAX_CHECK_TRACER_LEAKS"),
        *("JAX_CHECK_STATIC_INDICES", "JAX_THREAD_GUARD", "JAX_DEBUG_KEY_REUSE"),
        *("JAX_LEGACY_PRNG_KEY", "JAX_ENABLE_CUSTOM_PRNG"),
        *("JAX_DEFAULT_PRNG_IMPL", "JAX_RANDOM_SEED_OFFSET", "JAX_THREEFRY_PARTITIONABLE"),
        # What it says of itself, and where it keeps programs.
        *("JAX_LOG_COMPILES", "JAX_EXPLAIN_CACHE_MISSES", "JAX_LOGGING_LEVEL"),
        *("JAX_DEBUG_LOG_MODULES", "JAX_DISTRIBUTED_DEBUG", "JAX_TRACEBACK_FILTERING"),
        *("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "JAX_TRACER_ERROR_NUM_TRACEBACK_FRAMES"),
        *("JAX_SEND_TRACEBACK_TO_RUNTIME", "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"),
        *("JAX_DUMP_IR_TO", "JAX_DUMP_IR_MODES", "JAX_ENABLE_COMPILATION_CACHE"),
        *("JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE"),
        *("JAX_RAISE_PERSISTENT_CACHE_ERRORS", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"),
        *("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"),
    ),
    fatal=("XLA_FLAGS",),
    # XLA reads its flags when it is first asked for a compiler's options: 0.1 s of the processor.
    trial="""\
from contextlib import suppress
with suppress(ImportError):
    from jaxlib import _jax
    _jax.CompileOptions()
""",
)
"""What JAX and Flax read of the environment."""

ENVIRONMENT.apply()
