"""The chapters in JAX: their listings, and what the harness needs beside them."""

import numpy as np

from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, MakeTrainer
from frameworks.jax import collectives, hosts, kernels
from frameworks.jax.devices import devices, synchronize


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.jax import scratch

    return FromScratch(
        hosts.launch, devices, synchronize, hosts, scratch, kernels, collectives, np.asarray
    )


def concise() -> ByWrapper:
    """ResNet-18, Flax and JAX's own parallelism."""
    from frameworks.jax import concise, replicas

    return ByWrapper(hosts.launch, devices, synchronize, hosts, concise, replicas)


def strategies() -> BySplitting:
    """LeNet, split in every way."""
    from frameworks.jax import primitives
    from frameworks.strategies import mesh

    return BySplitting("jax", mesh, primitives, np.asarray, devices, synchronize, native)


def native() -> dict[str, MakeTrainer]:
    """LeNet, split by JAX's own means: they are loaded for runs that ask for them."""
    from frameworks.jax.native.pipeline import Pipeline
    from frameworks.jax.native.program import OneProgram
    from frameworks.strategies.layouts import LAYOUTS

    return {**dict.fromkeys(LAYOUTS, OneProgram), "pipeline": Pipeline}
