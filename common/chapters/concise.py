"""The concise chapter: ResNet-18 and each framework's own data parallelism."""

from argparse import _ArgumentGroup as ArgumentGroup
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, Final

from common.backends.frameworks import WRAPPERS
from common.chapters.spec import ChapterSpec, Options, option
from common.models.nets import Shapes, layer_shapes, resnet18_shapes
from common.parallel.nets import Net, resnet18
from common.terminal.command import WIDTH

BATCH_NORMS: Final = ("per-device", "sync")
"""Batch normalization over a device's shard, as in the book, or the whole minibatch."""


@dataclass(frozen=True)
class ConciseOptions(Options):
    """ResNet-18's width, its batch normalization, and the wrapper that replicates it."""

    MEANS: ClassVar = ("wrapper", "layers")

    width: int = option(
        None,
        f"channels of the first stage, at most {WIDTH}; the book's: 64",
        most=WIDTH,
        metavar="N",
    )
    batch_norm: str = option(
        "per-device",
        "per-device: each device normalizes by its own shard, as in the book; "
        "sync: all by the whole minibatch",
        known=BATCH_NORMS,
    )
    wrapper: str = field(default="", metadata={"known": ["", *chain(*WRAPPERS.values())]})
    layers: bool = option(
        False,
        "keep each layer's output for the first images of the test set, before and after "
        "training: `python -m common.parity DIR` finds where frameworks diverge",
    )

    @classmethod
    def add_flags(cls, group: ArgumentGroup, framework: str) -> None:
        """Adds a flag for each option; `--wrapper` has the framework's choices."""
        super().add_flags(group, framework)
        known = WRAPPERS[framework]
        group.add_argument("--wrapper", choices=known, default=known[0], help="(%(default)s)")

    def network(self) -> Net:
        return resnet18(self.width)

    def shapes(self) -> Shapes:
        """Running statistics are among them."""
        return resnet18_shapes(self.width)

    def layer_shapes(self) -> Shapes:
        return layer_shapes(self.width) if self.layers else {}

    def shards(self, devices: int) -> int | None:
        return devices if self.batch_norm == "per-device" else None


CHAPTER: Final = ChapterSpec(
    name="concise",
    title="ResNet-18 and the framework's own data parallelism, as in the book's "
    "'Concise Implementation for Multiple GPUs'",
    heading="ResNet-18, concise",
    options=ConciseOptions,
    presets={
        "book": {"batch_size": 256, "lr": 0.1, "epochs": 10, "width": 64},
        # At a constant rate running statistics lag behind the weights, and rounding alone
        # can move the accuracy after an epoch by ten points.
        "quick": {
            "batch_size": 32,
            "lr": 0.06,
            "lr_decay": "linear",
            "epochs": 3,
            "train_examples": 2560,
            "test_examples": 2000,
            "width": 8,
        },
    },
    per_device=("book",),
    without_gpu="quick",
)
