"""CUDA's libraries for MXNet's build for GPUs, which does not look for them itself."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

NAMES: Final = (
    *("cudart", "nvToolsExt", "nvrtc", "cublasLt", "cublas", "cufft", "curand", "cusolver"),
    *("cudnn", "nccl"),
)
"""Each needs some of those before it."""


def cuda_libraries() -> Iterator[Path]:
    """The files of NVIDIA's packages, in the order of loading; none for a CPU build."""
    place = find_spec("nvidia")
    folders = place.submodule_search_locations if place else ()
    for name in NAMES:
        for folder in folders or ():
            yield from sorted(Path(folder).glob(f"*/lib/lib{name}.so.*"))
