"""The chapter from scratch: LeNet and a hand-written allreduce."""

from dataclasses import dataclass
from typing import ClassVar, Final

from common.chapters.spec import ChapterSpec, Options, meanings, option
from common.chapters.suites import Settings, Suite
from common.parallel.nets import Net, lenet

ALLREDUCES: Final = {
    "star": "sum on the first device, then broadcast, as in the book",
    "sharded": "a star for each slice, each with another device in its middle",
    "ring": "reduce-scatter around a ring, then all-gather",
    "tree": "sums flow along a binomial tree, and back",
    "halving": "recursive halving, then doubling",
    "native": "the framework's own collective",
}
"""The algorithms that sum gradients over devices; the first is the default."""


@dataclass(frozen=True)
class ScratchOptions(Options):
    """By which of `ALLREDUCES` gradients are summed."""

    MEANS: ClassVar = ("allreduce",)

    allreduce: str = option("star", f"{meanings(ALLREDUCES)} (%(default)s)", known=ALLREDUCES)

    def network(self) -> Net:
        return lenet(0)


_SHORT: Final[Settings] = {
    "batch_size": 100,
    "lr": 0.2,
    "steps": 10,
    "train_examples": 951,
    "test_examples": 1101,
}


def _allreduce(name: str) -> Suite:
    """The float64 runs with another allreduce, which must give the same result."""
    settings = {**_SHORT, "dtype": "float64", "allreduce": name}
    folder = f"allreduce/{name}"
    # The run on one device is that of the float64 suite. Halving has a further step if the
    # number of devices is no power of two.
    plain = (2,) if name == "native" else ()  # of which each framework has its own code
    devices = (3, 4) if name == "halving" else (3,)
    return Suite("scratch", name, folder, plain, devices, settings, alone_in="float64")


SCRATCH: Final = ChapterSpec(
    name="scratch",
    title="LeNet and a hand-written allreduce, as in the book's 'Training on Multiple GPUs'",
    heading="LeNet, from scratch",
    options=ScratchOptions,
    presets={
        "book": {"batch_size": 256, "lr": 0.2, "epochs": 10},
        "quick": {
            "batch_size": 16,
            "lr": 0.3,
            "lr_decay": "linear",
            "epochs": 4,
            "train_examples": 4800,
            "test_examples": 2000,
        },
    },
    # Float64 shows the algorithm, float32 what rounding adds. The last minibatch of an epoch
    # has 51 examples, uneven on two devices; 100 are uneven on three. The test set is predicted
    # by a thousand images, and so has a short part at its end.
    suites=(
        Suite("scratch", "quick", ".", (1, 2), (), {"preset": "quick"}),
        Suite("scratch", "float64", "float64", (1, 2), (3,), {**_SHORT, "dtype": "float64"}),
        Suite("scratch", "float32", "float32", (1, 2), (3,), {**_SHORT, "dtype": "float32"}),
        *(_allreduce(name) for name in ALLREDUCES if name != "star"),
    ),
)
