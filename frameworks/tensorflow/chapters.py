"""The chapters in TensorFlow: the listings, with what the harness adds to them."""

from functools import partial

from common.chapters.data_parallel import ByWrapper, FromScratch
from common.chapters.splitting import BySplitting, MakeTrainer
from frameworks.tensorflow import collectives, hosts, kernels
from frameworks.tensorflow.devices import devices, synchronize
from frameworks.tensorflow.layouts import on_host


def scratch() -> FromScratch:
    """LeNet and a hand-written allreduce."""
    from frameworks.tensorflow import scratch

    return FromScratch(devices, synchronize, scratch, kernels, collectives, on_host)


def concise() -> ByWrapper:
    """ResNet-18 and `tf.distribute.MirroredStrategy`."""
    from frameworks.tensorflow import concise, distribution, replicas

    return ByWrapper(devices, synchronize, concise, replicas, distribution.launch, hosts)


def strategies() -> BySplitting:
    """LeNet, split by each strategy."""
    from frameworks.strategies.mesh import Split
    from frameworks.tensorflow import primitives

    by_hand = partial(Split, primitives, on_host)
    return BySplitting(devices, synchronize, by_hand, native)


def native() -> dict[str, MakeTrainer]:
    """LeNet, split by TensorFlow's native parallelism, loaded by native runs only."""
    from frameworks.strategies.layouts import LAYOUTS
    from frameworks.tensorflow.native.program import OneProgram

    return dict.fromkeys(LAYOUTS, OneProgram)
