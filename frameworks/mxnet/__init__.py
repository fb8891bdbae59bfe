"""The chapters in MXNet. Importing this package does not load MXNet."""

import ctypes
from typing import TYPE_CHECKING

from common.backends.environment import Environment
from frameworks.mxnet.libraries import cuda_libraries

if TYPE_CHECKING:
    import mxnet as mx

    from common.backends.interface import Concise, Scratch
    from common.chapters.concise import ConciseOptions
    from common.chapters.scratch import ScratchOptions
    from frameworks.mxnet import concise, scratch

    # The type checker proves that the chapters keep the promises of the interface.
    proof: Scratch[mx.Context, mx.np.ndarray, ScratchOptions] = scratch
    proof_concise: Concise[mx.Context, concise.Replicas, ConciseOptions] = concise

DISTRIBUTIONS = ("mxnet", "mxnet-cu112")
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.mxnet.scratch", "frameworks.mxnet.concise")
"""What all processes import, and one that they are forked from does for all: it takes seconds."""

ENGINES = {
    **dict.fromkeys(("scratch", "concise"), "dist_sync kvstore"),
    **dict.fromkeys(("native", "dist_sync"), "dist_sync kvstore, which adds in order of arrival"),
}
"""What joins the processes of a run over several hosts; an allreduce or a wrapper may differ."""

TRANSPORTS = {"cpu": "ps-lite", "gpu": "ps-lite"}
"""By what these exchange numbers, which lie on devices of a kind."""

MESSAGES = False
"""Whether a process has means to send one other process what it has: there are servers alone."""

ONE_THREAD_EACH = True
"""Devices compute at the same time, and its OpenBLAS lets two that use several threads each wait
for one another forever."""

ENVIRONMENT = Environment(
    defaults={
        # What of CUDA 11 compiles for a GPU knows no card after 8.6.
        "MXNET_USE_FUSION": "0",
        # cuDNN is a later one than that which MXNet was built with; it would warn of it.
        "MXNET_CUDNN_LIB_CHECKING": "0",
        # Threads that spin while they wait for work would keep the threads of its engine, and
        # Python, from the cores. `common/base/waiting.py` has the others spin for a moment.
        "OMP_WAIT_POLICY": "passive",
    },
)
"""What MXNet reads of the environment."""

ENVIRONMENT.apply()
# MXNet's build for GPUs finds those of CUDA's libraries alone that have been loaded.
for path in cuda_libraries():
    ctypes.CDLL(str(path))
