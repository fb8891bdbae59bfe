"""The chapters in PyTorch: their listings, and what the harness needs beside them."""

import torch

from common.backends.interface import Concise, Scratch
from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, MakeTrainer, Native
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
    from frameworks.strategies import mesh

    return BySplitting("pytorch", mesh, primitives, on_host, devices, synchronize, native)


def native() -> Native:
    """LeNet, split by PyTorch's own means: they are loaded for runs that ask for them."""
    from frameworks.pytorch.native import pipeline, tensor, zero
    from frameworks.pytorch.native.launch import launch

    ways: dict[str, MakeTrainer] = {
        "data": zero.Replicated,
        "pipeline": pipeline.Staged,
        "tensor": tensor.Sliced,
        "zero1": zero.Zero1,
        "zero2": zero.Zero2,
        "zero3": zero.Zero3,
    }
    return Native(ways, launch)
