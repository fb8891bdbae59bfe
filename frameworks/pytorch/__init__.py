"""The chapters in PyTorch. Importing this package does not load PyTorch."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from common.interface import Scratch
    from frameworks.pytorch import scratch

    # The type checker proves that the chapter keeps the promises of the interface.
    proof: Scratch[torch.device, torch.Tensor] = scratch

DISTRIBUTIONS = ("torch",)
"""The packages whose versions a record names."""
