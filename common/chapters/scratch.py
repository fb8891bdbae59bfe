"""The chapter from scratch: LeNet and a hand-written allreduce."""

from dataclasses import dataclass
from typing import ClassVar, Final

from common.chapters.spec import ChapterSpec, Options, meanings, option
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

    allreduce: str = option("star", meanings(ALLREDUCES), known=ALLREDUCES)

    def network(self) -> Net:
        return lenet(0)


CHAPTER: Final = ChapterSpec(
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
)
