"""Whether one array is another one transposed, reshaped or renamed.

Nothing is guessed: a rearrangement is named only where all entries agree after it, and where the
numbers are such that they would not agree by chance.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.compare.distances import distance, finite, largest, wide

SURE: Final = 1e-3
"""Beyond it, relative to the largest entry, agreement may be chance, whatever the tolerance is."""

MOST_AXES: Final = 5

Allowed = Callable[[Array, Array], float]
"""How far apart two arrays may be."""


def likeness(ours: Array, expected: Array, limit: float) -> str:
    """Whether `expected` is `ours` transposed or reshaped, in words.

    Empty if it is neither, if it is as it stands, or if several transpositions fit.
    """
    limit = min(limit, SURE)
    if _close(ours, expected, limit) or not _alike(ours, expected, limit):
        return ""
    axes = permutations(range(ours.ndim))
    fits = [each for each in axes if _close(ours.transpose(each), expected, limit)]
    # To exchange axes of length 1 moves nothing.
    moves = {tuple(axis for axis in each if ours.shape[axis] > 1): each for each in fits[::-1]}
    if moves:
        return f"equal after .transpose{fits[0]}" if len(moves) == 1 else ""
    if ours.shape != expected.shape and _close(ours.reshape(expected.shape), expected, limit):
        return f"equal after .reshape{expected.shape}"
    return ""


def counterparts(
    ours: Mapping[str, Array], expected: Mapping[str, Array], limit: Allowed
) -> dict[str, tuple[str, str]]:
    """For arrays of `expected`: which of `ours` is the same under another name, and how.

    Only where each is the other's only counterpart.
    """
    found = {
        theirs: [
            (name, how)
            for name, values in ours.items()
            if (how := _renamed(values, wanted, min(limit(values, wanted), SURE)))
        ]
        for theirs, wanted in expected.items()
    }
    taken = Counter(name for offered in found.values() for name, _ in offered)
    alone = {theirs: offered[0] for theirs, offered in found.items() if len(offered) == 1}
    return {theirs: (name, how) for theirs, (name, how) in alone.items() if taken[name] == 1}


def _renamed(ours: Array, expected: Array, limit: float) -> str:
    if _close(ours, expected, limit):
        return "equal" if _alike(ours, expected, limit) else ""
    return likeness(ours, expected, limit)


def _close(ours: Array, expected: Array, limit: float) -> bool:
    return ours.shape == expected.shape and distance(ours, expected)[0] <= limit


def _alike(ours: Array, expected: Array, limit: float) -> bool:
    """Whether both may hold the same numbers, and not only zeros, which fit in any order."""
    if ours.size != expected.size or not ours.size or ours.ndim > MOST_AXES:
        return False
    if not (finite(ours) and finite(expected)):
        return False
    first, second = wide(ours), wide(expected)
    close = limit * largest(second)
    with np.errstate(over="ignore"):
        return bool(second.max() - second.min() > close >= abs(first.max() - second.max()))
