"""Named settings: the book's own, and a quick one that still learns something."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Preset:
    """What a preset sets; None for examples means all that the data set has."""

    batch_size: int
    lr: float
    epochs: int
    train_examples: int | None = None
    test_examples: int | None = None


PRESETS: Final = {
    "scratch": {
        "book": Preset(batch_size=256, lr=0.2, epochs=10),
        "quick": Preset(batch_size=32, lr=0.2, epochs=3, train_examples=12_800),
    },
}
"""The presets of each chapter, by name."""
