"""Compares two sets of arrays by name, such as the weights of two files, array by array.

An array that is only transposed, reshaped or renamed is named as such. Nothing is guessed: all
entries agree after it, and the numbers are such that they would not agree by chance.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import permutations
from typing import Final

import numpy as np
from pydantic import BaseModel

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.compare.distances import Distance, compare, distance, finite, largest, wide

SURE: Final = 1e-3
"""Beyond it, relative to the largest entry, agreement may be chance, whatever the tolerance is."""

MOST_AXES: Final = 5

Allowed = Callable[[Array, Array], float]
"""The tolerance of two arrays."""


class ArrayPair(BaseModel):
    """One array of both; its distance is relative to the largest entry of the second.

    None: no distance for NaN or another shape, no limit where training amplifies rounding.
    """

    array: str
    check: str = ""
    distance: float | None = None
    limit: float | None = None
    where: str = ""
    passed: bool = False
    note: str = ""


class PairVerdict(BaseModel):
    """The verdict on two; with `differences` in their setting, no array is compared."""

    passed: bool
    conclusion: str
    differences: list[str] = []
    notes: list[str] = []
    arrays: list[ArrayPair] = []


def compare_arrays(
    ours: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float | None = None
) -> PairVerdict:
    """The verdict on two sets of arrays, `ours` against what is `expected`.

    Without a `tolerance` only roundings of the same numbers pass: see `rounding`.
    Raises RequestError if there is nothing to compare.
    """
    first, second = numbers(ours, "first"), numbers(expected, "second")
    verdict = pair_verdict(pair_up(first, second, tolerance))
    if verdict.passed and not any(values.size for values in first.values()):
        raise RequestError("nothing was compared: all arrays of both files are empty")
    return verdict


def rounding(ours: Array, expected: Array) -> float:
    """How far apart two roundings of the same numbers can be: the epsilon of the coarser dtype.

    Each is off by half an epsilon of the number at most. Whole numbers are not rounded: 0.
    """
    dtypes = [each.dtype for each in (ours, expected) if each.dtype.kind == "f"]
    return max((float(np.finfo(dtype).eps) for dtype in dtypes), default=0.0)


def numbers(arrays: Mapping[str, Array], which: str) -> Weights:
    """The arrays as NumPy's. Raises RequestError if there are none, or what is no numbers."""
    if not arrays:
        raise RequestError(f"the {which} file holds no arrays")
    found = {name: np.asarray(values) for name, values in arrays.items()}
    for name, values in found.items():
        if values.dtype.kind not in "fiub":
            raise RequestError(f"{name} of the {which} holds {values.dtype}, not numbers")
    return found


def pair_up(
    ours: Weights, expected: Weights, tolerance: float | None, check: str = ""
) -> list[ArrayPair]:
    """Every array of either, those of `expected` first; see `rounding` for no tolerance."""
    limit: Allowed = rounding if tolerance is None else lambda *_: tolerance
    lacking = {name: expected[name] for name in expected if name not in ours}
    surplus = {name: ours[name] for name in ours if name not in expected}
    notes = dict.fromkeys(lacking, "is in the second alone")
    notes |= dict.fromkeys(surplus, "is in the first alone")
    for name, other, how in counterparts(surplus, lacking, limit):
        notes[other] += f"; the first's {name} is {how}"
        notes[name] += f"; is the second's {other}"
    return [
        ArrayPair(array=each.array, check=check, note=notes[each.array])
        if each.array in notes
        else _pair(each, ours[each.array], expected[each.array], limit, check)
        for each in compare(ours, expected, "")
    ]


def _pair(found: Distance, ours: Array, expected: Array, limit: Allowed, check: str) -> ArrayPair:
    most, measured = limit(ours, expected), math.isfinite(found.far)
    where = found.where.removeprefix(found.array).replace("[]", "")
    passed = measured and found.far <= most
    note = _note(found.far, ours, expected, most, check)
    return ArrayPair(
        array=found.array,
        check=check,
        distance=found.far if measured else None,
        limit=most if math.isfinite(most) else None,
        where=where if measured and found.far else "",
        passed=passed,
        note=_joined(note, "" if passed else likeness(ours, expected, most)),
    )


def _note(far: float, ours: Array, expected: Array, limit: float, check: str) -> str:
    """What there is to say of a pair besides its distance."""
    if ours.shape != expected.shape:
        return f"{ours.shape} and {expected.shape}"
    unsound = [which for which, each in (("first", ours), ("second", expected)) if not finite(each)]
    if unsound:
        return f"NaN or infinity in the {' and the '.join(unsound)}"
    if far == math.inf:
        return "farther apart than float64 can say"
    if check == "trajectory":
        beyond = np.abs(wide(ours) - wide(expected)) > limit * largest(expected)
        return f"first at step {beyond.argmax() + 1}" if beyond.any() else ""
    # Of runs it is said once for all that they had another dtype.
    other = ours.dtype != expected.dtype and not check
    return f"{ours.dtype} and {expected.dtype}" if other else ""


def pair_verdict(pairs: list[ArrayPair], notes: Iterable[str] = ()) -> PairVerdict:
    """Passed, if every pair has."""
    limited = [pair for pair in pairs if pair.limit is not None]
    if failed := [pair for pair in pairs if not pair.passed]:
        where = f"{len(failed)} of {len(pairs)} arrays, first in {describe(failed[0])}"
        conclusion = f"they diverge in {where}"
    elif any(pair.distance for pair in limited):
        worst = max(limited, key=lambda pair: (pair.distance or 0) / (pair.limit or 1))
        figure = f"{worst.array}, {worst.distance:.1e} where {worst.limit:.1e} is allowed"
        conclusion = f"the same within the limit: {len(limited)} arrays; the farthest is {figure}"
    else:
        conclusion = f"the same: all {len(limited)} arrays are equal"
    return PairVerdict(passed=not failed, conclusion=conclusion, notes=list(notes), arrays=pairs)


def describe(pair: ArrayPair) -> str:
    """How the arrays of a pair diverge, in a line."""
    figure = ""
    if pair.distance is not None:
        limit = "" if pair.limit is None else f", at most {pair.limit:.1e} is allowed"
        figure = f"{pair.distance:.1e} at {pair.where or 'the only entry'}{limit}"
    return f"{pair.array}: {_joined(figure, pair.note)}"


def _joined(*said: str) -> str:
    return "; ".join(filter(None, said))


def likeness(ours: Array, expected: Array, limit: float) -> str:
    """Whether `expected` is `ours` as it is, transposed or reshaped, in words.

    Empty if it is none of these, or if several transpositions fit.
    """
    limit = min(limit, SURE)
    if not _alike(ours, expected, limit):
        return ""
    axes = permutations(range(ours.ndim))
    fits = [each for each in axes if _close(ours.transpose(each), expected, limit)]
    # To exchange axes of length 1 moves nothing.
    moves = {tuple(axis for axis in each if ours.shape[axis] > 1) for each in fits}
    if _close(ours, expected, limit):
        return "equal"
    if fits:
        return f"equal after .transpose{fits[0]}" if len(moves) == 1 else ""
    reshaped = _close(ours.reshape(expected.shape), expected, limit)
    return f"equal after .reshape{expected.shape}" if reshaped else ""


def counterparts(
    ours: Mapping[str, Array], expected: Mapping[str, Array], limit: Allowed
) -> list[tuple[str, str, str]]:
    """Arrays with another name in `expected`: the name in `ours`, the other one, and how alike.

    Only where each is the other's only counterpart.
    """
    found = [
        (name, other, how)
        for other, wanted in expected.items()
        for name, values in ours.items()
        if (how := likeness(values, wanted, limit(values, wanted)))
    ]
    times = [Counter(each[place] for each in found) for place in (0, 1)]
    return [each for each in found if times[0][each[0]] == times[1][each[1]] == 1]


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
