"""The chapters in JAX: the listings, with what the harness adds to them."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from common.backends.interface import Chapter
from frameworks.jax.devices import devices, synchronize

if TYPE_CHECKING:
    from common.trainers.strategies import MakeTrainer


def scratch() -> Chapter:
    """LeNet and a hand-written allreduce."""
    from common.trainers.scratch import FromScratch
    from frameworks.jax import collectives, kernels, scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, np.asarray)


def concise() -> Chapter:
    """ResNet-18, Flax and JAX's native parallelism."""
    from common.trainers.concise import ByWrapper
    from frameworks.jax import concise, hosts, replicas

    return ByWrapper(devices, synchronize, concise, replicas, hosts.launch, hosts)


def strategies() -> Chapter:
    """LeNet, split by each strategy."""
    from common.trainers.strategies import BySplitting
    from frameworks.jax import gpt, lenet, moe, primitives
    from frameworks.strategies.mesh import Split

    nets = {"lenet": lenet, "gpt": gpt, "moe": moe}
    by_hand = partial(Split, primitives, nets, np.asarray)
    return BySplitting(devices, synchronize, by_hand, native)


def native() -> "dict[str, MakeTrainer]":
    """LeNet, split by JAX's native parallelism, loaded by native runs only."""
    from frameworks.jax.native.pipeline import Pipeline
    from frameworks.jax.native.program import OneProgram
    from frameworks.strategies.layouts import LAYOUTS

    return {**dict.fromkeys(LAYOUTS, OneProgram), "pipeline": Pipeline}
