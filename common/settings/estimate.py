"""How long the book's ResNet-18 would take on this processor."""

from typing import Final

from common.models.operations import matrix_rate, training_operations
from common.settings.chapters import PRESETS

EFFICIENCY: Final = 0.5
"""The share of the matrix-product rate that training reaches: 0.4 to 0.65, by framework."""


def book_hours() -> float:
    """The hours that the book's setting takes on the CPU, from its arithmetic. A rough guess."""
    book = PRESETS["concise"]["book"]
    operations = 60_000 * book.epochs * training_operations("concise", book.width)
    return operations / (EFFICIENCY * matrix_rate()) / 3600
