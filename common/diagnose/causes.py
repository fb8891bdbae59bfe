"""Causes that the arrays of a wrong run show.

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


def scaled_gradient(run: Run, expected: Weights, diverged: Sequence[str]) -> str:
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
    line = f"The whole gradient is the expected one times {factor:.6g}"
    sizes = {"the batch size": run.record.config.batch_size, "the number of devices": run.devices}
    for what, count in sizes.items():
        if abs(factor / count - 1) <= SAME:
            line += f", {what}"
        if abs(factor * count - 1) <= SAME:
            line += f", one over {what}"
    return f"{line}."


def running_statistics(run: Run, expected: Weights, diverged: Sequence[str]) -> str:
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
    with np.errstate(all="ignore"):
        lines = [cause(run, expected, diverged) for cause in CAUSES]
    return [line for line in lines if line]
