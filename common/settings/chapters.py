"""The chapters, and named settings of each: the book's own, and a quick one that still learns."""

from dataclasses import dataclass
from typing import Final

CHAPTERS: Final = ("scratch", "concise")


@dataclass(frozen=True)
class Preset:
    """What a preset sets; None for examples means all that the data set has.

    `width` is that of ResNet-18. With `per_device`, batch size and learning rate are those of
    one device, and grow with the number of devices.
    """

    batch_size: int
    lr: float
    epochs: int
    train_examples: int | None = None
    test_examples: int | None = None
    width: int | None = None
    per_device: bool = False
    lr_decay: str = "none"


TITLES: Final = {
    "scratch": "LeNet and a hand-written allreduce, as in the book's 'Training on Multiple GPUs'",
    "concise": "ResNet-18 and the framework's own data parallelism, as in the book's "
    "'Concise Implementation for Multiple GPUs'",
}
"""What each chapter is, in words."""

AUTO: Final = {"scratch": "book", "concise": "book on GPUs, else quick"}
"""The preset that is taken where none is named, in words."""

PRESETS: Final = {
    "scratch": {
        "book": Preset(batch_size=256, lr=0.2, epochs=10),
        "quick": Preset(
            batch_size=16,
            lr=0.3,
            lr_decay="linear",
            epochs=4,
            train_examples=4800,
            test_examples=2000,
        ),
    },
    "concise": {
        "book": Preset(batch_size=256, lr=0.1, epochs=10, width=64, per_device=True),
        # At a constant rate the running statistics lag behind weights that move: the accuracy after
        # an epoch then swings by ten points at times, for rounding alone.
        "quick": Preset(
            batch_size=32,
            lr=0.03,
            lr_decay="linear",
            epochs=5,
            train_examples=5280,
            test_examples=2000,
            width=8,
        ),
    },
}
"""The presets of each chapter, by name."""

LR_DECAYS: Final = ("none", "linear")
"""What becomes of the learning rate: nothing, or it falls to 0 over the run."""

ALLREDUCES: Final = {
    "star": "sum on the first device, then broadcast, as in the book",
    "sharded": "a star for each slice, each with another device in its middle",
    "ring": "reduce-scatter around a ring, then all-gather",
    "tree": "sums flow along a binomial tree, and back",
    "halving": "recursive halving, then doubling",
    "native": "the framework's own collective",
}
"""The ways to sum gradients over devices, in words; the first is the default."""

BATCH_NORMS: Final = ("per-device", "sync")
"""What batch normalization sees: a device's shard, as in the book, or the whole minibatch."""
