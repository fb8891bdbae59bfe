"""Arrays drawn at random, and the one pair of a comparison."""

import numpy as np

from common.base.arrays import Array, Weights
from common.pairs.arrays import compare_arrays
from common.pairs.verdict import ArrayPair


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).standard_normal(shape)


def only(ours: Weights, expected: Weights, tolerance: float | None = None) -> ArrayPair:
    """The one pair that fails."""
    verdict = compare_arrays(ours, expected, tolerance)
    (failed,) = [pair for pair in verdict.arrays if not pair.passed]
    assert not verdict.passed
    assert verdict.conclusion.startswith(
        f"they diverge in 1 of {len(verdict.arrays)} arrays, first in {failed.array}: "
    )
    return failed
