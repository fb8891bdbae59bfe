"""The chapters in JAX: the listings, with what the harness adds to them."""

from functools import partial

import numpy as np

from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, MakeTrainer
from frameworks.jax import collectives, hosts, kernels
from frameworks.jax.devices import devices, synchronize


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.jax import scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, np.asarray)


def concise() -> ByWrapper:
    """ResNet-18, Flax and JAX's native parallelism."""
    from frameworks.jax import concise, replicas

    return ByWrapper(devices, synchronize, concise, replicas, hosts.launch, hosts)


def strategies() -> BySplitting:
    """LeNet, split by each strategy."""
    from frameworks.jax import primitives
    from frameworks.strategies.mesh import Split

    by_hand = partial(Split, primitives, np.asarray)
    return BySplitting(devices, synchronize, by_hand, native)


def native() -> dict[str, MakeTrainer]:
    """LeNet, split by JAX's native parallelism, loaded by native runs only."""
    from frameworks.jax.native.pipeline import Pipeline
    from frameworks.jax.native.program import OneProgram
    from frameworks.strategies.layouts import LAYOUTS

    return {**dict.fromkeys(LAYOUTS, OneProgram), "pipeline": Pipeline}
