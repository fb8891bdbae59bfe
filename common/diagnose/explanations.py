"""What the arrays of a wrong run tell about its mistake, as far as they do tell.

Each explanation can be read off the record and the arrays that were expected; none is a guess.
"""

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

FITS, DIFFERS = 0.95, 0.5
"""Correlations: one order fits from the first on, the other does not fit up to the second."""

SAME: Final = 1e-6
"""Relative distance up to which numbers are the same ones, in any order or up to a factor."""


@dataclass(frozen=True)
class Explanation:
    """Something that the arrays tell, and the tensor that it is about, if it is about one."""

    text: str
    tensor: str = ""


def explanations(run: Run, expected: Weights, diverged: Sequence[str]) -> list[Explanation]:
    """What the arrays tell; `diverged` names those that are too far off, in the net's order."""
    ours = {name: values.astype(np.float64) for name, values in run.arrays.items()}
    with np.errstate(all="ignore"):
        return [
            *flatten_orders(CRITERIA[run.record.chapter].flattened, ours, expected),
            *reordered(ours, expected, diverged),
            *scaled(run, ours, expected),
            *statistics(diverged),
        ]


def flatten_orders(
    flattened: Mapping[str, tuple[int, ...]],
    ours: Mapping[str, Array],
    expected: Mapping[str, Array],
) -> Iterator[Explanation]:
    """Whether rows of a dense layer fit the expected ones in another order of flattening.

    A wrong order changes every number that comes after it, and which ReLU units open. But the
    length of a row of the gradient tells how active the input is that the row belongs to.
    """
    for name, planes in flattened.items():
        for array in (f"gradients/{name}", f"weights/{name}"):
            if array in ours and array in expected:
                found, right = (np.linalg.norm(each[array], axis=1) for each in (ours, expected))
                if order := _order(found, right, planes):
                    yield Explanation(f"The rows of {array} {order}", name)


def flattenings(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Every other order of the axes, and the index of each entry (n,) once flattened in it."""
    indices = np.arange(np.prod(shape)).reshape(shape)
    for axes in list(permutations(range(len(shape))))[1:]:
        yield axes, indices.transpose(axes).ravel()


def _order(ours: Array, theirs: Array, planes: tuple[int, ...]) -> str:
    """The order in which `ours` (rows,) fits `theirs`, in words; empty if none is another."""
    standing, right = correlation(ours, theirs), ", ".join(AXES)
    fits = {}
    for axes, order in flattenings(planes):
        other = ", ".join(AXES[axis] for axis in axes)
        stand = f"stand in the order ({other}), not ({right})"
        fits[stand] = correlation(ours[np.argsort(order)], theirs)
        taken = f"were brought into the order ({right}) as if they had stood in ({other})"
        fits[taken] = correlation(ours[order], theirs)
    found, best = max(fits.items(), key=lambda item: item[1])
    if best < FITS or standing > DIFFERS:
        return ""
    return (
        f"{found}: once this is undone, the correlation of their lengths with the expected ones "
        f"is {best:.3f}; now it is {standing:.3f}."
    )


def correlation(a: Array, b: Array) -> float:
    """Pearson's correlation of two vectors (n,); 0 where one of them does not vary."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


def reordered(
    ours: Mapping[str, Array], expected: Mapping[str, Array], diverged: Sequence[str]
) -> Iterator[Explanation]:
    """Which arrays hold the expected numbers in another order."""
    for array in diverged:
        if array in ours and array in expected and array != "losses":
            found, right = (np.sort(each[array], axis=None) for each in (ours, expected))
            if distance(found, right)[0] <= SAME:
                text = f"{array} holds the expected numbers in another order."
                yield Explanation(text, array.partition("/")[2])


def scaled(
    run: Run, ours: Mapping[str, Array], expected: Mapping[str, Array]
) -> Iterator[Explanation]:
    """Whether the whole gradient is a multiple of the expected one."""
    names = [name for name in expected if name.startswith("gradients/") and name in ours]
    if not names:
        return
    gradients = [
        np.concatenate([each[name].ravel() for name in names]) for each in (ours, expected)
    ]
    factor, rest = _factor(*gradients)
    if rest <= SAME < abs(factor - 1):
        sizes = {
            "the batch size": run.record.config.batch_size,
            "the number of devices": run.devices,
        }
        meaning = [f", {what}" for what, size in sizes.items() if abs(factor / size - 1) <= SAME]
        meaning += [
            f", one over {what}" for what, size in sizes.items() if abs(factor * size - 1) <= SAME
        ]
        yield Explanation(
            f"The whole gradient is the expected one times {factor:.6g}{''.join(meaning)}."
        )


def statistics(diverged: Sequence[str]) -> Iterator[Explanation]:
    """Whether running statistics of batch normalization alone diverge."""
    names = [name.removeprefix("weights/") for name in diverged if name.startswith("weights/")]
    if names and not any(map(trainable, names)):
        text = "Of the weights, running statistics of batch normalization alone diverge."
        if all(name.endswith("var") for name in names):
            text += " Means and momentum are right, but the variance is computed otherwise."
        yield Explanation(text, names[0])


def _factor(ours: Array, theirs: Array) -> tuple[float, float]:
    """By what factor `theirs` comes nearest to `ours`, and the relative distance that is left."""
    size = float(np.vdot(theirs, theirs))
    factor = float(np.vdot(theirs, ours)) / size if 0 < size < np.inf else 0.0
    return factor, distance(ours, factor * theirs)[0]
