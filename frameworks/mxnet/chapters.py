"""The chapters in MXNet: the listings, with what the harness adds to them."""

from functools import partial

from common.backends.interface import Chapter
from frameworks.mxnet.devices import devices, synchronize
from frameworks.mxnet.layouts import on_host


def scratch() -> Chapter:
    """LeNet and a hand-written allreduce."""
    from common.trainers.scratch import FromScratch
    from frameworks.mxnet import collectives, kernels, scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, on_host)


def concise() -> Chapter:
    """ResNet-18 and Gluon's Trainer."""
    from common.trainers.concise import ByWrapper
    from frameworks.mxnet import concise, replicas

    return ByWrapper(devices, synchronize, concise, replicas)


def strategies() -> Chapter:
    """LeNet, split by each strategy."""
    from common.trainers.strategies import BySplitting
    from frameworks.mxnet import gpt, lenet, moe, primitives
    from frameworks.strategies.mesh import Split

    nets = {"lenet": lenet, "gpt": gpt, "moe": moe}
    by_hand = partial(Split, primitives, nets, on_host)
    return BySplitting(devices, synchronize, by_hand)
