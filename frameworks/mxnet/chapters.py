"""The chapters in MXNet: their listings, and what the harness needs beside them."""

from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, MakeTrainer
from frameworks.mxnet import collectives, hosts, kernels
from frameworks.mxnet.devices import devices, synchronize
from frameworks.mxnet.layouts import on_host


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.mxnet import scratch

    return FromScratch(
        hosts.launch, devices, synchronize, hosts, scratch, kernels, collectives, on_host
    )


def concise() -> ByWrapper:
    """ResNet-18 and Gluon's Trainer."""
    from frameworks.mxnet import concise, replicas

    return ByWrapper(hosts.launch, devices, synchronize, hosts, concise, replicas)


def strategies() -> BySplitting:
    """LeNet, split in every way."""
    from frameworks.mxnet import primitives
    from frameworks.strategies import mesh

    return BySplitting("mxnet", mesh, primitives, on_host, devices, synchronize, native)


def native() -> dict[str, MakeTrainer]:
    """LeNet, split by MXNet's own means: they are loaded for runs that ask for them."""
    from frameworks.mxnet.native import pipeline, replicas

    return {"data": replicas.Replicated, "pipeline": pipeline.Staged}
