"""Compares two sets of arrays by name, such as the weights of two files.

An array that is only transposed, reshaped or renamed is named as such, if all entries
agree after it and would not agree by chance.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError
from common.compare.distances import compare, distance, finite, largest, wide

SURE: Final = 1e-3
"""Beyond it, relative to the largest entry, agreement may be chance."""

MOST_AXES: Final = 5


@dataclass(frozen=True)
class ArrayPair:
    """One array of both; its distance is relative to the largest entry of the second.

    The distance of NaN or of another shape is infinite, and so is the limit where
    training amplifies rounding.
    """

    array: str
    check: str
    distance: float = math.inf
    limit: float = math.inf
    where: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the arrays are as near as they have to be."""
        return math.isfinite(self.distance) and self.distance <= self.limit

    def describe(self) -> str:
        """How the arrays diverge, in a line."""
        place = f"{self.distance:.1e} at {self.where or 'the only entry'}"
        figure = f"{place}, at most {self.limit:.1e} is allowed"
        return f"{self.array}: {_joined(figure if self.distance < math.inf else '', self.note)}"


@dataclass(frozen=True)
class PairVerdict:
    """The verdict on two; with `differences` in their setting, no array is compared."""

    arrays: list[ArrayPair]
    notes: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every pair has."""
        return not self.differences and all(pair.passed for pair in self.arrays)

    @property
    def conclusion(self) -> str:
        """The verdict in a line."""
        if self.differences:
            return f"not comparable, as the settings differ: {'; '.join(self.differences)}"
        if failed := [pair for pair in self.arrays if not pair.passed]:
            first = failed[0].describe()
            return f"they diverge in {len(failed)} of {len(self.arrays)} arrays, first in {first}"
        limited = [pair for pair in self.arrays if pair.limit < math.inf]
        if not any(pair.distance for pair in limited):
            return f"the same: all {len(limited)} arrays are equal"
        worst = max(limited, key=lambda pair: pair.distance / (pair.limit or 1))
        figure = f"{worst.array}, {worst.distance:.1e} where {worst.limit:.1e} is allowed"
        return f"the same within the limit: {len(limited)} arrays; the farthest is {figure}"


def compare_arrays(
    ours: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float | None = None
) -> PairVerdict:
    """The verdict on two sets of arrays, `ours` against what is `expected`.

    Without a `tolerance` only roundings of the same numbers pass: see `allowed`.
    Raises RequestError if there is nothing to compare, or what is no numbers.
    """
    for name, values in [*ours.items(), *expected.items()]:
        if values.dtype.kind not in "fiub":
            raise RequestError(f"{name} holds {values.dtype}, not numbers")
    if not any(values.size for values in [*ours.values(), *expected.values()]):
        raise RequestError("nothing was compared: there are no arrays, or all are empty")
    return PairVerdict(list(pair_up(ours, expected, tolerance)))


def pair_up(
    ours: Mapping[str, Array],
    expected: Mapping[str, Array],
    tolerance: float | None,
    check: str = "",
    prefix: str = "",
) -> Iterator[ArrayPair]:
    """Every array of either whose name starts with `prefix`, those of `expected` first.

    See `allowed` for no tolerance.
    """
    surplus = {name: ours[name] for name in ours if name not in expected}
    for found in compare(ours, expected, prefix):
        name = found.array
        if name in surplus:
            yield ArrayPair(name, check, note="is in the first alone")
        elif name not in ours:
            note = _joined("is in the second alone", renamed(surplus, expected[name], tolerance))
            yield ArrayPair(name, check, note=note)
        else:
            limit = allowed(ours[name], expected[name], tolerance)
            note = _note(found.far, ours[name], expected[name], limit, check)
            where = found.where.removeprefix(name).replace("[]", "") if found.far else ""
            yield ArrayPair(name, check, found.far, limit, where, note)


def allowed(ours: Array, expected: Array, tolerance: float | None) -> float:
    """The tolerance, else how far apart two roundings can be.

    That is the epsilon of the coarser dtype: each is off by half of it at most.
    """
    if tolerance is not None:
        return tolerance
    dtypes = [each.dtype for each in (ours, expected) if each.dtype.kind == "f"]
    return max((float(np.finfo(dtype).eps) for dtype in dtypes), default=0.0)


def _note(far: float, ours: Array, expected: Array, limit: float, check: str) -> str:
    """What there is to say of a pair besides its distance."""
    unsound = [which for which, each in (("first", ours), ("second", expected)) if not finite(each)]
    similar = "" if far <= limit and far < math.inf else likeness(ours, expected, limit)
    if ours.shape != expected.shape:
        return _joined(f"{ours.shape} and {expected.shape}", similar)
    if unsound:
        return f"NaN or infinity in the {' and the '.join(unsound)}"
    if check == "trajectory":
        beyond = np.abs(wide(ours) - wide(expected)) > limit * largest(expected)
        return f"first at step {beyond.argmax() + 1}" if beyond.any() else ""
    # Of runs it is said once for all that they had another dtype.
    other = ours.dtype != expected.dtype and not check
    return _joined(f"{ours.dtype} and {expected.dtype}" if other else "", similar)


def _joined(*said: str) -> str:
    return "; ".join(filter(None, said))


def renamed(surplus: Mapping[str, Array], expected: Array, tolerance: float | None) -> str:
    """Which array of another name is `expected`, and how; empty if none is, or several are."""
    likenesses = {
        name: likeness(values, expected, allowed(values, expected, tolerance))
        for name, values in surplus.items()
    }
    found = [f"the first's {name} is {how}" for name, how in likenesses.items() if how]
    return found[0] if len(found) == 1 else ""


def likeness(ours: Array, expected: Array, limit: float) -> str:
    """Whether `expected` is `ours` as it is, transposed or reshaped, in words; empty if not."""
    if ours.size != expected.size or not ours.size or ours.ndim > MOST_AXES:
        return ""
    first, second, limit = wide(ours), wide(expected), min(limit, SURE)
    with np.errstate(all="ignore"):
        # Equal entries fit in any order. Most other arrays differ in the largest entry.
        close = limit * largest(second)
        if not second.max() - second.min() > close >= abs(first.max() - second.max()):
            return ""
    changes = {f".transpose{axes}": ours.transpose(axes) for axes in permutations(range(ours.ndim))}
    changes[f".reshape{expected.shape}"] = ours.reshape(expected.shape)
    for change, values in {"": ours, **changes}.items():
        if values.shape == expected.shape and distance(values, expected)[0] <= limit:
            return f"equal after {change}" if change else "equal"
    return ""
