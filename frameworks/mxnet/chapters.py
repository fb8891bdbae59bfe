"""The chapters in MXNet: the listings, with what the harness adds to them."""

from functools import partial

from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting
from frameworks.mxnet import collectives, kernels
from frameworks.mxnet.devices import devices, synchronize
from frameworks.mxnet.layouts import on_host


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.mxnet import scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, on_host)


def concise() -> ByWrapper:
    """ResNet-18 and Gluon's Trainer."""
    from frameworks.mxnet import concise, replicas

    return ByWrapper(devices, synchronize, concise, replicas)


def strategies() -> BySplitting:
    """LeNet, split by each strategy."""
    from frameworks.mxnet import primitives
    from frameworks.strategies.mesh import Split

    by_hand = partial(Split, primitives, on_host)
    return BySplitting(devices, synchronize, by_hand)
