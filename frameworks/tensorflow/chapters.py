"""The chapters in TensorFlow: the listings, with what the harness adds to them."""

from functools import partial
from typing import TYPE_CHECKING

from common.backends.interface import Chapter
from frameworks.tensorflow.devices import devices, synchronize
from frameworks.tensorflow.layouts import on_host

if TYPE_CHECKING:
    from common.trainers.strategies import MakeTrainer


def scratch() -> Chapter:
    """LeNet and a hand-written allreduce."""
    from common.trainers.scratch import FromScratch
    from frameworks.tensorflow import collectives, kernels, scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, on_host)


def concise() -> Chapter:
    """ResNet-18 and `tf.distribute.MirroredStrategy`."""
    from common.trainers.concise import ByWrapper
    from frameworks.tensorflow import concise, distribution, hosts, replicas

    return ByWrapper(devices, synchronize, concise, replicas, distribution.launch, hosts)


def strategies() -> Chapter:
    """LeNet, split by each strategy."""
    from common.trainers.strategies import BySplitting
    from frameworks.strategies.mesh import Split
    from frameworks.tensorflow import gpt, lenet, moe, primitives

    nets = {"lenet": lenet, "gpt": gpt, "moe": moe}
    by_hand = partial(Split, primitives, nets, on_host)
    return BySplitting(devices, synchronize, by_hand, native)


def native() -> "dict[str, MakeTrainer]":
    """LeNet, split by TensorFlow's native parallelism, loaded by native runs only."""
    from frameworks.strategies.layouts import LAYOUTS
    from frameworks.tensorflow.native.program import OneProgram

    return dict.fromkeys(LAYOUTS, OneProgram)
