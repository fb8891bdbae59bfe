"""What the arrays of a wrong run tell about its cause. Each can be read off; none is a guess."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.checks import Run
from common.compare.criteria import CRITERIA
from common.compare.distances import distance
from common.models.nets import trainable

AXES: Final = ("channel", "row", "column")

RIGHT: Final = ", ".join(AXES)

FITS, DIFFERS = 0.95, 0.5
"""Correlations: an order fits from the first on, the expected one does not up to the second."""

SAME: Final = 1e-6
"""Relative error up to which numbers are the same ones, in any order or up to a factor."""


@dataclass(frozen=True)
class Explanation:
    """Something that the arrays tell, and the tensor that it is about, if it is about one."""

    text: str
    tensor: str = ""


def explanations(run: Run, expected: Weights, diverged: Sequence[str]) -> list[Explanation]:
    """What the arrays tell; `diverged` names those beyond their tolerance, in the net's order."""
    ours = {name: values.astype(np.float64) for name, values in run.arrays.items()}
    sizes = {
        "the batch size": run.record.config.batch_size,
        "the number of devices": run.devices,
    }
    with np.errstate(all="ignore"):
        return [
            *flatten_orders(CRITERIA[run.record.chapter].flattened, ours, expected),
            *scaled(ours, expected, sizes),
            *statistics(diverged),
        ]


def flatten_orders(
    flattened: Mapping[str, tuple[int, ...]], ours: Mapping[str, Array], expected: Weights
) -> Iterator[Explanation]:
    """Whether a dense layer, or its gradient, has its rows in another order of flattening.

    A wrong order changes all that is computed after it, but the norm of a row still tells how
    active the input is to which it belongs.
    """
    for name, planes in flattened.items():
        for array in (f"gradients/{name}", f"weights/{name}"):
            if array in ours and array in expected:
                found, right = (np.linalg.norm(each[array], axis=1) for each in (ours, expected))
                if order := _order(found, right, planes):
                    yield Explanation(f"The rows of {array} {order}, by the norm of each.", name)


def _order(found: Array, right: Array, planes: tuple[int, ...]) -> str:
    """The order in which `found` (rows,) fits `right`, in words; empty if no other one fits."""
    fits = {}
    for axes in list(permutations(range(len(planes))))[1:]:
        wrong = ", ".join(AXES[axis] for axis in axes)
        back = found.reshape([planes[axis] for axis in axes]).transpose(np.argsort(axes))
        fits[f"stand in the order ({wrong}), not ({RIGHT})"] = correlation(back.ravel(), right)
        back = found.reshape(planes).transpose(axes)
        moved = f"were brought into the order ({RIGHT}) as if they had stood in ({wrong})"
        fits[moved] = correlation(back.ravel(), right)
    order, best = max(fits.items(), key=lambda item: item[1])
    return order if best >= FITS and correlation(found, right) <= DIFFERS else ""


def correlation(a: Array, b: Array) -> float:
    """Pearson's correlation of two vectors (n,); 0 where one of them does not vary."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


def scaled(
    ours: Mapping[str, Array], expected: Weights, sizes: Mapping[str, int]
) -> Iterator[Explanation]:
    """Whether the whole gradient is a multiple of the expected one; `sizes` are likely factors."""
    names = [name for name in expected if name.startswith("gradients/") and name in ours]
    if not names:
        return
    found, right = (np.concatenate([each[k].ravel() for k in names]) for each in (ours, expected))
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
