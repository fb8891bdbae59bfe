"""The chapters in MXNet. Importing this package does not load MXNet."""

import ctypes

from common.backends.environment import Environment
from frameworks.mxnet.libraries import cuda_libraries

DISTRIBUTIONS = ("mxnet", "mxnet-cu112")
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.mxnet.scratch", "frameworks.mxnet.concise")
"""Modules that all processes need. They are forked from one that has imported these."""

ENGINES = {
    **dict.fromkeys(("scratch", "concise"), "dist_sync kvstore"),
    **dict.fromkeys(("native", "dist_sync"), "dist_sync kvstore, which adds in order of arrival"),
}
"""What joins the processes of a run over several hosts; an allreduce or a wrapper may differ."""

TRANSPORTS = {"cpu": "ps-lite", "gpu": "ps-lite"}
"""By the kind of devices: how the processes exchange numbers."""

ONE_THREAD_EACH = True
"""Devices compute at the same time, and its OpenBLAS lets two that use several threads each wait
for one another forever."""

ENVIRONMENT = Environment(
    decided={
        # Another library than that of the package whose version a record names.
        "MXNET_LIBRARY_PATH": None,
        # With them, float32 is multiplied in bfloat16, or on a GPU in float16.
        "DNNL_DEFAULT_FPMATH_MODE": None,
        "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION": None,
        # Its kvstore over hosts meets by other means then, or loses messages.
        **dict.fromkeys(("DMLC_LOCAL", "DMLC_PS_VAN_TYPE", "PS_DROP_MSG")),
    },
    defaults={
        # What of CUDA 11 compiles for a GPU knows no card after 8.6.
        "MXNET_USE_FUSION": "0",
        # cuDNN is a later one than that which MXNet was built with; it would warn of it.
        "MXNET_CUDNN_LIB_CHECKING": "0",
        # A Symbol's executor would say by which library it computes.
        "MXNET_SUBGRAPH_VERBOSE": "0",
        # Threads that spin while they wait for work would keep the threads of its engine, and
        # Python, from the cores. `common/base/waiting.py` has the others spin for a moment.
        "OMP_WAIT_POLICY": "passive",
    },
    rounding=(
        *("MXNET_MKLDNN_ENABLED", "MXNET_MKLDNN_FORCE_FC_AB_FORMAT", "MXNET_SAFE_ACCUMULATION"),
        *("MXNET_EXEC_INPLACE_GRAD_SUM_CAP", "DNNL_MAX_CPU_ISA", "DNNL_CPU_ISA_HINTS"),
        "OPENBLAS_CORETYPE",
        # On GPUs.
        *("MXNET_USE_FUSION", "MXNET_KVSTORE_USETREE", "NCCL_ALGO", "NCCL_PROTO"),
        "CUBLAS_WORKSPACE_CONFIG",
    ),
    # Numbers that it cannot read, or a thing that is not there; it complains once it is loaded.
    breaking=(
        *("MXNET_ELIMINATE_COMMON_EXPR", "MXNET_ENABLE_GPU_P2P", "MXNET_ENFORCE_CYTHON"),
        *("MXNET_ENABLE_CYTHON", "MXNET_INFER_STORAGE_TYPE_VERBOSE_LOGGING"),
        *("MXNET_MEM_PLAN_VERBOSE_LOGGING", "MXNET_MKLDNN_CACHE_NUM", "MXNET_MKLDNN_DEBUG"),
        *("MXNET_CPU_PARALLEL_SIZE", "MXNET_OPTIMIZER_AGGREGATION_SIZE"),
        *("MXNET_UPDATE_ON_KVSTORE", "NNVM_AUTO_SEARCH_MATCH_RANGE", "NNVM_EXEC_MATCH_RANGE"),
        "NNVM_EXEC_NUM_TEMP",
    ),
    # At these it aborts, or hangs as Python ends, or complains there once more.
    fatal=(
        *("MXNET_ENGINE_TYPE", "MXNET_ENGINE_INFO", "MXNET_CPU_WORKER_NTHREADS"),
        *("MXNET_CPU_PRIORITY_NTHREADS", "MXNET_CPU_TEMP_COPY", "MXNET_CPU_PARALLEL_RAND_COPY"),
        *("MXNET_GPU_WORKER_NTHREADS", "MXNET_GPU_COPY_NTHREADS", "MXNET_GPU_TEMP_COPY"),
        *("MXNET_GPU_PARALLEL_RAND_COPY", "MXNET_MP_WORKER_NTHREADS"),
        *("MXNET_MP_OPENCV_NUM_THREADS", "MXNET_OMP_MAX_THREADS", "MXNET_EXEC_BULK_EXEC_TRAIN"),
        *("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD"),
        "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_BWD",
        *("MXNET_KVSTORE_LOGTREE", "MXNET_MKLDNN_ENABLED", "MXNET_PROFILER_AUTOSTART"),
        *("MXNET_PROFILER_MODE", "MXNET_OUTPUT_TUNING_DATA", "MXNET_TUNING_WEIGHT_SCALE"),
        *("MXNET_USE_NUM_CORES_OPERATOR_TUNING", "MXNET_VERBOSE_TUNING_INFO"),
        *("MXNET_DISABLE_MKLDNN_CONV_OPT", "MXNET_DISABLE_MKLDNN_FC_OPT"),
        *("MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT", "MXNET_DISABLE_MKLDNN_FUSE_CONV_BN"),
        *("MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU", "MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM"),
    ),
    trial="from frameworks.mxnet.trial import main; main()",
    # As a scheduler or a server it would serve as soon as it is imported.
    roles=("DMLC_ROLE",),
)
"""What MXNet reads of the environment."""

ENVIRONMENT.apply()
# MXNet's build for GPUs finds those of CUDA's libraries alone that have been loaded.
for path in cuda_libraries():
    ctypes.CDLL(str(path))
