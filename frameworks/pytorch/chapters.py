"""The chapters in PyTorch: their listings, and what the harness needs beside them."""

import torch

from common.backends.interface import Concise, Scratch
from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting
from frameworks.pytorch import collectives, hosts, kernels
from frameworks.pytorch.devices import devices, synchronize
from frameworks.pytorch.launch import launch
from frameworks.pytorch.layouts import on_host


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.pytorch import scratch

    listing: Scratch[torch.device, torch.Tensor] = scratch
    return FromScratch(listing, kernels, collectives, on_host, launch, devices, synchronize, hosts)


def concise() -> ByWrapper:
    """ResNet-18 and PyTorch's own wrappers."""
    from frameworks.pytorch import concise, replicas, wrappers

    listing: Concise[torch.device, concise.Replicas] = concise
    return ByWrapper(listing, replicas, wrappers.launch, devices, synchronize, hosts)


def strategies() -> BySplitting:
    """LeNet, split in every way."""
    from frameworks.pytorch import primitives
    from frameworks.pytorch.native.ways import native
    from frameworks.strategies import mesh

    return BySplitting("pytorch", mesh, primitives, on_host, devices, synchronize, native)
