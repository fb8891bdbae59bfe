"""How long the book's setting of a chapter would take on this processor."""

from typing import Final

from common.chapters.chapters import SPECS
from common.chapters.operations import matrix_rate, training_operations

EFFICIENCY: Final = 0.5
"""The share of the matrix-product rate that training reaches: 0.4 to 0.65, by framework."""


def book_hours(chapter: str) -> float:
    """The hours that the book's setting takes on the CPU, from its arithmetic. A rough guess."""
    spec = SPECS[chapter]
    images = 60_000 * spec.presets["book"].epochs
    operations = images * training_operations(spec.of_the_book())
    return operations / (EFFICIENCY * matrix_rate()) / 3600
