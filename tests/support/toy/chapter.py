"""A chapter of one dense layer, as whoever adds a chapter writes it."""

from dataclasses import dataclass
from typing import Any

from common.chapters.spec import ChapterSpec, Options, Preset
from common.chapters.suites import Suite
from common.models.nets import Shapes


@dataclass(frozen=True)
class ToyOptions(Options):
    """By how much the images are multiplied."""

    gain: int = 1

    def net(self) -> str:
        """The net, in words."""
        return "one layer"

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the layer's weights."""
        return {"fc.weight": (784, 10), "fc.bias": (10,)}

    def places(self, layer: str) -> int:
        """At how many places of an image a layer is applied."""
        return 1

    def troubles(self, framework: str) -> dict[str, Any]:
        """A gain that no flag can ask for."""
        return {} if self.gain > 0 else {"gain": self.gain}


def add_flags(add: Any, framework: str) -> None:
    """Adds the chapter's own flags."""
    add(
        "--gain", type=int, default=1, metavar="N", help="images are multiplied by it (%(default)s)"
    )


SETTINGS = {"batch_size": 7, "lr": 0.1, "steps": 5, "train_examples": 40, "test_examples": 20}

TOY = ChapterSpec(
    name="toy",
    net="one layer",
    title="One dense layer",
    heading="One dense layer",
    options=ToyOptions,
    add_flags=add_flags,
    presets={"book": Preset(batch_size=256, lr=0.1, epochs=10)},
    criteria="common.compare.toy",
    suites=(
        Suite("toy", "double", "double", (1, 2), (3,), {**SETTINGS, "dtype": "float64", "gain": 1}),
    ),
)
