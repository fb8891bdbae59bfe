"""The chapters in PyTorch. Importing this package does not load PyTorch."""

from importlib.metadata import distributions

if __name__ == "pytorch":  # imported inside frameworks/
    raise SystemExit("pytorch is hidden here: cd .. && python -m frameworks.pytorch.scratch")

from common.backends.frameworks import Environment

# `common/backends/loading.py` explains each name.
DISTRIBUTIONS = ("torch",)
PRELOAD = ("frameworks.pytorch.scratch", "frameworks.pytorch.concise", "torch._dynamo")
ONE_THREAD_EACH = False
ENVIRONMENT = Environment(
    removed=("*_DEFAULT_FPMATH_MODE",),
    # By itself each process of a run over hosts warns of an address without a name.
    defaults={"TORCH_CPP_LOG_LEVEL": "ERROR"},
    rounding=(
        *("ATEN_CPU_CAPABILITY", "*DNN*_CPU_ISA*", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
        *("MKL_DISABLE_FAST_MM", "MKL_NUM_STRIPES", "TORCH_MKLDNN_MATMUL_MIN_*"),
        *("CUBLAS*_WORKSPACE_*", "DISABLE_ADDMM_CUDA_LT", "TORCH_BLAS_PREFER_CUBLASLT"),
        *("TORCH_CUDNN_*", "PYTORCH_TUNABLEOP_ENABLED", "NCCL_ALGO", "NCCL_PROTO"),
    ),
    breaking=(
        *("TORCH_DISTRIBUTED_DEBUG", "TORCH_LOGS", "TORCH_DIST_INIT_BARRIER"),
        *("GLOO_*", "NCCL_SOCKET_IFNAME", "PYTORCH_*ALLOC_CONF"),
    ),
)
"""The variables that PyTorch reads; `docs/environment.md` explains each."""


def for_gpus() -> bool:
    """Whether the installed build is for GPUs, with what it needs of CUDA."""
    return any(not each.version.endswith("+cpu") for each in distributions(name="torch"))


ENVIRONMENT.apply()
