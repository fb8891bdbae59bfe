"""The chapters in PyTorch: the listings, with what the harness adds to them."""

from functools import partial
from typing import TYPE_CHECKING

from common.backends.interface import Chapter
from frameworks.pytorch.devices import devices, synchronize
from frameworks.pytorch.layouts import on_host

if TYPE_CHECKING:
    from common.trainers.strategies import MakeTrainer


def scratch() -> Chapter:
    """LeNet and a hand-written allreduce."""
    from common.trainers.scratch import FromScratch
    from frameworks.pytorch import collectives, kernels, scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, on_host)


def concise() -> Chapter:
    """ResNet-18 and PyTorch's wrappers."""
    from common.trainers.concise import ByWrapper
    from frameworks.pytorch import concise, hosts, replicas, wrappers

    return ByWrapper(devices, synchronize, concise, replicas, wrappers.launch, hosts)


def strategies() -> Chapter:
    """LeNet, split by each strategy."""
    from common.trainers.strategies import BySplitting
    from frameworks.pytorch import gpt, lenet, moe, primitives
    from frameworks.pytorch.native.launch import launch
    from frameworks.strategies.mesh import Split

    nets = {"lenet": lenet, "gpt": gpt, "moe": moe}
    by_hand = partial(Split, primitives, nets, on_host)
    return BySplitting(devices, synchronize, by_hand, native, launch)


def native() -> "dict[str, MakeTrainer]":
    """LeNet, split by PyTorch's native parallelism, loaded by native runs only."""
    from frameworks.pytorch.native import pipeline, tensor, zero

    return {
        "data": zero.Replicated,
        "pipeline": pipeline.Staged,
        "tensor": tensor.Sliced,
        "zero1": zero.Zero1,
        "zero2": zero.Zero2,
        "zero3": zero.Zero3,
    }
