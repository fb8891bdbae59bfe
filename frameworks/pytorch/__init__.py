"""The chapters in PyTorch. Importing this package does not load PyTorch."""

from typing import TYPE_CHECKING

from common.backends.environment import Environment

if TYPE_CHECKING:
    import torch

    from common.backends.interface import Concise, Scratch
    from common.chapters.concise import ConciseOptions
    from common.chapters.scratch import ScratchOptions
    from frameworks.pytorch import concise, scratch

    # The type checker proves that the chapters keep the promises of the interface.
    proof: Scratch[torch.device, torch.Tensor, ScratchOptions] = scratch
    proof_concise: Concise[torch.device, concise.Replicas, ConciseOptions] = concise

DISTRIBUTIONS = ("torch",)
"""The packages whose versions a record names."""

PRELOAD = ("frameworks.pytorch.scratch", "frameworks.pytorch.concise", "torch._dynamo")
"""What all processes import, and one that they are forked from does for all: it takes seconds."""

ENGINES = {"scratch": "torch.distributed", "concise": "torch.distributed"}
"""What joins the processes of a run over several hosts."""

TRANSPORTS = {"cpu": "Gloo", "gpu": "NCCL"}
"""By what these exchange numbers, which lie on devices of a kind."""

MESSAGES = True
"""Whether a process has means to send one other process what it has."""

ONE_THREAD_EACH = False
"""Virtual devices may use all threads."""

ENVIRONMENT = Environment(
    # Errors alone: every process of a run over hosts would warn where the address of another one
    # has no name.
    defaults={"TORCH_CPP_LOG_LEVEL": "ERROR"},
)
"""What PyTorch reads of the environment."""

ENVIRONMENT.apply()
