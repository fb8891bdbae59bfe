"""The `sums` data set: additions as texts, from which a net learns to add."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

TOKENS: Final = "0123456789+=\n"
LENGTH: Final = 9
TRAIN: Final = 8000
"""Of the 10,000 sums of two numbers below 100; the others are for testing."""

NO_LABEL: Final = 255
"""Stands for no label: the question is not to be predicted, nor what follows the answer."""


def text(first: int, second: int) -> str:
    """A sum as a text; digits of the answer are in the order in which one adds, the last first."""
    return f"{first}+{second}={str(first + second)[::-1]}\n"


def sums(first: tuple[int | None, int | None] = (None, None)) -> tuple[Bytes, ...]:
    """Texts (n, 9) and labels (n, 9) for training, and for testing: in an order that is random.

    The label of a token is the next one, from "=" on. Texts are filled up with ends of lines.
    `first`: so many of the train and of the test examples alone; None: all.
    """
    order = np.random.RandomState(0).permutation(100 * 100)
    parts: list[Bytes] = []
    for numbers in (order[:TRAIN][: first[0]], order[TRAIN:][: first[1]]):
        texts = np.full((len(numbers), LENGTH), TOKENS.index("\n"), np.uint8)
        labels = np.full((len(numbers), LENGTH), NO_LABEL, np.uint8)
        for row, number in enumerate(numbers):
            line = text(*divmod(int(number), 100))
            tokens = [TOKENS.index(sign) for sign in line]
            answer = line.index("=") + 1
            texts[row, : len(tokens) - 1] = tokens[:-1]
            labels[row, answer - 1 : len(tokens) - 1] = tokens[answer:]
        parts += [texts, labels]
    return tuple(parts)
