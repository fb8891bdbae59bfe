"""The chapters in MXNet. Importing this package does not load MXNet."""

import ctypes
from importlib.metadata import distributions

if __name__ == "mxnet":  # imported inside frameworks/
    raise SystemExit("mxnet is hidden here: cd .. && python -m frameworks.mxnet.scratch")

from common.backends.frameworks import Environment
from frameworks.mxnet.libraries import cuda_libraries

# `common/backends/loading.py` explains each name.
DISTRIBUTIONS = ("mxnet", "mxnet-cu112")
PRELOAD = ("frameworks.mxnet.scratch", "frameworks.mxnet.concise")
# With several threads each, devices wait for one another forever in its OpenBLAS.
ONE_THREAD_EACH = True

ENVIRONMENT = Environment(
    removed=(
        "DMLC_ROLE",  # as a scheduler or a server it would serve as soon as it is imported
        *("MXNET_LIBRARY_PATH", "*_DEFAULT_FPMATH_MODE", "DMLC_LOCAL", "DMLC_PS_VAN_TYPE"),
        *("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "PS_DROP_MSG"),
    ),
    defaults={
        # CUDA 11 cannot compile for a card after 8.6.
        "MXNET_USE_FUSION": "0",
        "MXNET_CUDNN_LIB_CHECKING": "0",
        "MXNET_SUBGRAPH_VERBOSE": "0",
        # Threads that spin while they wait for work would keep the threads of its engine, and
        # Python, from the cores. `common/base/machine.py` has the others spin for a moment.
        "OMP_WAIT_POLICY": "passive",
    },
    rounding=(
        *("MXNET_MKLDNN_ENABLED", "MXNET_MKLDNN_FORCE_FC_AB_FORMAT", "MXNET_SAFE_ACCUMULATION"),
        *("MXNET_EXEC_INPLACE_GRAD_SUM_CAP", "DNNL_*CPU_ISA*", "OPENBLAS_CORETYPE"),
        *("MXNET_USE_FUSION", "MXNET_KVSTORE_USETREE", "NCCL_ALGO", "NCCL_PROTO"),
        "CUBLAS_WORKSPACE_CONFIG",
    ),
    breaking=("MXNET_*", "NNVM_*"),
    fatal=(
        *("MXNET_ENGINE_*", "MXNET_CPU_*", "MXNET_GPU_*", "MXNET_MP_*", "MXNET_OMP_*"),
        *("MXNET_EXEC_BULK_*", "MXNET_KVSTORE_LOGTREE", "MXNET_PROFILER_*", "MXNET_*TUNING*"),
        *("MXNET_MKLDNN_ENABLED", "MXNET_DISABLE_MKLDNN_*"),
    ),
    trial="""\
import os, sys
try:
    import mxnet
    mxnet.nd.ones((2, 2)).sum().wait_to_read()
except (ImportError, OSError):  # the process that is going to train says so
    pass
except Exception as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(1)
os._exit(0)  # it may hang, or complain once more, as Python ends
""",
)
"""The variables that MXNet reads; `docs/environment.md` explains each."""


def for_gpus() -> bool:
    """Whether the installed build is for GPUs, with what it needs of CUDA."""
    return any(distributions(name="mxnet-cu112"))


ENVIRONMENT.apply()
# MXNet's build for GPUs finds only those of CUDA's libraries that have been loaded.
for path in cuda_libraries():
    ctypes.CDLL(str(path))
