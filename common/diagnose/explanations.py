"""What the arrays of a wrong run tell about its cause. Each can be read off; none is a guess."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Weights
from common.compare.checks import Run
from common.compare.distances import distance
from common.models.nets import trainable

SAME: Final = 1e-6
"""Relative error up to which numbers are the same ones, up to a factor."""


@dataclass(frozen=True)
class Explanation:
    """Something that the arrays tell, and the tensor that it is about, if it is about one."""

    text: str
    tensor: str = ""


def explanations(run: Run, expected: Weights, diverged: Sequence[str]) -> list[Explanation]:
    """What the arrays tell; `diverged` names those beyond their tolerance, in the net's order."""
    sizes = {
        "the batch size": run.record.config.batch_size,
        "the number of devices": run.devices,
    }
    with np.errstate(all="ignore"):
        return [*scaled(run.arrays, expected, sizes), *statistics(diverged)]


def scaled(ours: Weights, expected: Weights, sizes: Mapping[str, int]) -> Iterator[Explanation]:
    """Whether the whole gradient is a multiple of the expected one; `sizes` are likely factors."""
    names = [name for name in expected if name.startswith("gradients/") and name in ours]
    if not names:
        return
    found, right = (
        np.concatenate([each[name].astype(np.float64).ravel() for name in names])
        for each in (ours, expected)
    )
    size = float(np.vdot(right, right))
    factor = float(np.vdot(right, found)) / size if 0 < size < np.inf else 0.0
    if distance(found, factor * right)[0] <= SAME < abs(factor - 1):
        likely = {**sizes} | {f"one over {what}": 1 / size for what, size in sizes.items()}
        meaning = [f", {what}" for what, size in likely.items() if abs(factor / size - 1) <= SAME]
        text = f"The whole gradient is the expected one times {factor:.6g}{''.join(meaning)}."
        yield Explanation(text)


def statistics(diverged: Sequence[str]) -> Iterator[Explanation]:
    """Whether only running statistics of batch normalization diverge."""
    names = [name.removeprefix("weights/") for name in diverged if name.startswith("weights/")]
    if names and not any(map(trainable, names)):
        text = "Of the weights, only running statistics of batch normalization diverge."
        if all(name.endswith("var") for name in names):
            text += " Means and momentum are right, but the variance is computed otherwise."
        yield Explanation(text, names[0])
