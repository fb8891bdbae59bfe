"""Causes that the arrays of a wrong run show. Each can be read off; none is a guess.

A cause is a function of the run, of the arrays that are expected, and of the names of those beyond
their tolerance, in the net's order. It returns a line, empty if the arrays do not show it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from common.base.arrays import Weights
from common.compare.distances import distance
from common.compare.runs import Run
from common.models.nets import trainable

SAME: Final = 1e-6
"""Relative error up to which numbers are the same ones, up to a factor."""


def scaled_gradient(run: Run, expected: Weights, diverged: Sequence[str]) -> str:
    """Whether the whole gradient is a multiple of the expected one."""
    names = [name for name in expected if name.startswith("gradients/") and name in run.arrays]
    if not names:
        return ""
    ours, right = (
        np.concatenate([arrays[name].ravel() for name in names], dtype=np.float64)
        for arrays in (run.arrays, expected)
    )
    size = float(np.vdot(right, right))
    factor = float(np.vdot(right, ours)) / size if 0 < size < np.inf else 0.0
    if not distance(ours, factor * right)[0] <= SAME < abs(factor - 1):
        return ""
    sizes = {"the batch size": run.record.config.batch_size, "the number of devices": run.devices}
    likely = {**sizes} | {f"one over {what}": 1 / size for what, size in sizes.items()}
    meaning = [f", {what}" for what, size in likely.items() if abs(factor / size - 1) <= SAME]
    return f"The whole gradient is the expected one times {factor:.6g}{''.join(meaning)}."


def running_statistics(run: Run, expected: Weights, diverged: Sequence[str]) -> str:
    """Whether only running statistics of batch normalization diverge."""
    names = [name for name in diverged if name.startswith("weights/")]
    if not names or any(map(trainable, names)):
        return ""
    text = "Of the weights, only running statistics of batch normalization diverge."
    if all(name.endswith("var") for name in names):
        text += " Means and momentum are right, but the variance is computed otherwise."
    return text


CAUSES: Final[Sequence[Callable[[Run, Weights, Sequence[str]], str]]] = (
    scaled_gradient,
    running_statistics,
)


def causes(run: Run, expected: Weights, diverged: Sequence[str]) -> list[str]:
    """The lines of all causes that the arrays show."""
    with np.errstate(all="ignore"):
        lines = [cause(run, expected, diverged) for cause in CAUSES]
    return [line for line in lines if line]
