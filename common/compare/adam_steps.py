"""What a step of Adam shows: the gradient by its first moment, its square by the second.

The update follows from both moments. A gradient that is 0 but for rounding, as that of the keys'
biases, would move a weight as far as any other.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Array

BETAS: Final = (0.9, 0.999)
TINY: Final = 1e-8


@dataclass(frozen=True)
class Moments:
    """Both moments (n,) of all weights."""

    momentum: Array
    variance: Array


def clipped(gradient: Array, most: float) -> Array:
    """A gradient (n,) with a norm of `most` at most; 0: any."""
    norm = float(np.sqrt((gradient**2).sum()))
    return gradient * (most / norm) if most and norm > most else gradient


def shown(before: Moments, after: Moments) -> tuple[Moments, Moments]:
    """The gradient and its square (n,) that moved the moments, and what an epsilon adds to each."""
    found, epsilons = [], []
    for beta, old, new in (
        (BETAS[0], before.momentum, after.momentum),
        (BETAS[1], before.variance, after.variance),
    ):
        found.append((new - beta * old) / (1 - beta))
        epsilons.append(np.maximum(np.abs(old), np.abs(new)) / (1 - beta))
    return Moments(*found), Moments(*epsilons)


def update(after: Moments, step: int) -> Array:
    """By what the moments move weights (n,) in a step from 1, in units of the rate."""
    m, v = after.momentum / (1 - BETAS[0] ** step), after.variance / (1 - BETAS[1] ** step)
    moved: Array = m / (np.sqrt(v) + TINY)
    return moved
