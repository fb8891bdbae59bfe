"""The chapters in MXNet. Importing this package does not load MXNet."""

import ctypes

if __name__ == "mxnet":  # imported inside frameworks/
    raise SystemExit("mxnet is hidden here: cd .. && python -m frameworks.mxnet.scratch")

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
    removed=(
        # Another library than that of the package whose version a record names.
        "MXNET_LIBRARY_PATH",
        # With them, float32 is multiplied in bfloat16, or on a GPU in float16.
        *("*_DEFAULT_FPMATH_MODE", "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION"),
        # Its kvstore over hosts meets by other means then, or loses messages.
        *("DMLC_LOCAL", "DMLC_PS_VAN_TYPE", "PS_DROP_MSG"),
    ),
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
        *("MXNET_EXEC_INPLACE_GRAD_SUM_CAP", "DNNL_*CPU_ISA*", "OPENBLAS_CORETYPE"),
        # On GPUs.
        *("MXNET_USE_FUSION", "MXNET_KVSTORE_USETREE", "NCCL_ALGO", "NCCL_PROTO"),
        "CUBLAS_WORKSPACE_CONFIG",
    ),
    breaking=("MXNET_*", "NNVM_*"),
    # It aborts at values that it cannot read, hangs as Python ends, or complains once more.
    fatal=(
        *("MXNET_ENGINE_*", "MXNET_CPU_*", "MXNET_GPU_*", "MXNET_MP_*", "MXNET_OMP_*"),
        *("MXNET_EXEC_BULK_*", "MXNET_KVSTORE_LOGTREE", "MXNET_PROFILER_*", "MXNET_*TUNING*"),
        *("MXNET_MKLDNN_ENABLED", "MXNET_DISABLE_MKLDNN_*"),
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
