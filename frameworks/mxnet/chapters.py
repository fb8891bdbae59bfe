"""The chapters in MXNet: their listings, and what the harness needs beside them."""

import mxnet as mx

from common.backends.interface import Concise, Scratch
from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, Native
from frameworks.mxnet import collectives, hosts, kernels
from frameworks.mxnet.devices import devices, synchronize
from frameworks.mxnet.hosts import launch
from frameworks.mxnet.layouts import on_host


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.mxnet import scratch

    listing: Scratch[mx.Context, mx.np.ndarray] = scratch
    return FromScratch(listing, kernels, collectives, on_host, launch, devices, synchronize, hosts)


def concise() -> ByWrapper:
    """ResNet-18 and Gluon's Trainer."""
    from frameworks.mxnet import concise, replicas

    listing: Concise[mx.Context, concise.Replicas] = concise
    return ByWrapper(listing, replicas, launch, devices, synchronize, hosts)


def strategies() -> BySplitting:
    """LeNet, split in every way."""
    from frameworks.mxnet import primitives
    from frameworks.strategies import mesh

    return BySplitting("mxnet", mesh, primitives, on_host, devices, synchronize, native)


def native() -> Native:
    """LeNet, split by MXNet's own means: they are loaded for runs that ask for them."""
    from frameworks.mxnet.native import pipeline, replicas

    return Native({"data": replicas.Replicated, "pipeline": pipeline.Staged})
