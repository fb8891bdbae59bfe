"""A chapter of one dense layer, its columns split over the devices, as its author writes it."""

from dataclasses import dataclass
from typing import Any, Literal

from common.chapters.spec import ChapterSpec, Options, Preset
from common.chapters.suites import Suite
from common.models.nets import Shapes

SPLITS = ("columns", "reversed")


@dataclass(frozen=True)
class ToyOptions(Options):
    """The momentum, and whether the first device has the first columns or the last ones."""

    MEANS = ("split",)

    momentum: float = 0.9
    split: Literal["columns", "reversed"] = "columns"

    def net(self) -> str:
        """The net, in words."""
        return "one layer"

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the layer's weights."""
        return {"fc.weight": (784, 10), "fc.bias": (10,)}

    def positions(self, layer: str) -> int:
        """At how many positions of an image a layer is applied."""
        return 1

    def parts(self, devices: int) -> int:
        """Every device takes the whole minibatch."""
        return 1

    def way(self) -> str:
        """The way to split."""
        return self.split


def add_flags(add: Any, framework: str) -> None:
    """Adds the chapter's own flags."""
    add("--momentum", type=float, default=0.9, metavar="M", help="(%(default)s)")
    add("--split", choices=SPLITS, default=SPLITS[0], help="(%(default)s)")


SETTINGS = {
    **{"batch_size": 7, "lr": 0.1, "steps": 5, "train_examples": 40, "test_examples": 20},
    **{"dtype": "float64", "momentum": 0.9, "dataset": "synthetic"},
}

TOY = ChapterSpec(
    name="toy",
    net="one layer",
    title="One dense layer, its columns split",
    heading="One dense layer",
    options=ToyOptions,
    add_flags=add_flags,
    presets={"book": Preset(batch_size=256, lr=0.1, epochs=10)},
    suites=tuple(
        Suite("toy", f"float64-{split}", "float64", (1, 2, 3), (), {**SETTINGS, "split": split})
        for split in SPLITS
    ),
)
