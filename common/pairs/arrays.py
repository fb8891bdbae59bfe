"""Compares two sets of arrays by name, and finds those that are transposed or renamed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError
from common.compare.distances import compare, distance, finite, largest, wide
from common.compare.findings import HEADINGS, Check, farthest, nearest_to_failing


@dataclass(frozen=True)
class PairVerdict:
    """The verdict on two, by array or check; with `differences` in the setting, neither."""

    checks: list[Check]
    notes: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.differences and all(check.passed for check in self.checks)

    @property
    def conclusion(self) -> str:
        if self.differences:
            return f"not comparable, as the settings differ: {'; '.join(self.differences)}"
        what = "checks" if self.checks[0].check else "arrays"
        failed = [check for check in self.checks if not check.passed]
        if failed:
            first = f"first in {heading(failed[0])}: {described(failed[0])}"
            return f"they diverge in {len(failed)} of {len(self.checks)} {what}, {first}"
        if not any(check.distance for check in self.checks):
            return f"the same: all {len(self.checks)} {what} are equal"
        worst = nearest_to_failing(self.checks)
        figure = f"{worst.distance:.1e} where {worst.tolerance:.1e} is allowed"
        same = f"the same within the limit: {len(self.checks)} {what}"
        return f"{same}; the farthest is {heading(worst)}, {figure}"


def heading(check: Check) -> str:
    """What was compared: an array, or what a check of runs compares."""
    return HEADINGS[check.check] if check.check else check.array


def described(check: Check) -> str:
    if check.distance is None:
        return check.note or "it cannot be compared"
    place = f"{check.distance:.1e} at {check.where or 'the only entry'}"
    return joined(f"{place}, at most {check.tolerance:.1e} is allowed", check.note)


def compare_arrays(
    ours: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float | None = None
) -> PairVerdict:
    """The verdict on two sets of arrays, in the order of those that are `expected`.

    Without a `tolerance` only roundings of the same numbers pass: see `allowed`.
    Raises RequestError if there is nothing to compare, or what is no numbers.
    """
    for name, values in [*ours.items(), *expected.items()]:
        if values.dtype.kind not in "fiub":
            raise RequestError(f"{name} holds {values.dtype}, not numbers")
    if not any(values.size for values in [*ours.values(), *expected.values()]):
        raise RequestError("nothing was compared: there are no arrays, or all are empty")
    surplus = {name: ours[name] for name in ours if name not in expected}
    checks = []
    for far in compare(ours, expected, ""):
        name = far.array
        limit = None
        if name in surplus:
            note = "is only in the first"
        elif name not in ours:
            note = joined("is only in the second", renamed(surplus, expected[name], tolerance))
        else:
            limit = allowed(ours[name], expected[name], tolerance)
            note = remark(ours[name], expected[name], far.far, limit)
        check = farthest("", [far], limit)
        check.where = far.where.removeprefix(name) if far.far else ""
        check.note = note
        checks.append(check)
    return PairVerdict(checks)


def allowed(ours: Array, expected: Array, tolerance: float | None) -> float:
    """The tolerance, else the coarser dtype's epsilon: roundings are off by half."""
    if tolerance is not None:
        return tolerance
    dtypes = [values.dtype for values in (ours, expected) if values.dtype.kind == "f"]
    return max((float(np.finfo(dtype).eps) for dtype in dtypes), default=0.0)


def remark(ours: Array, expected: Array, far: float, limit: float) -> str:
    """What there is to say of two arrays besides their distance."""
    similar = "" if far <= limit else likeness(ours, expected, limit)
    if ours.shape != expected.shape:
        return joined(f"{ours.shape} and {expected.shape}", similar)
    both = {"first": ours, "second": expected}
    if unsound := [which for which in both if not finite(both[which])]:
        return f"NaN or infinity in the {' and the '.join(unsound)}"
    dtypes = f"{ours.dtype} and {expected.dtype}" if ours.dtype != expected.dtype else ""
    return joined(dtypes, similar)


def joined(*said: str) -> str:
    return "; ".join(filter(None, said))


def renamed(surplus: Mapping[str, Array], expected: Array, tolerance: float | None) -> str:
    """Which array of another name alone is `expected`, and how; or nothing."""
    alike = []
    for name, values in surplus.items():
        if how := likeness(values, expected, allowed(values, expected, tolerance)):
            alike.append(f"the first's {name} is {how}")
    return alike[0] if len(alike) == 1 else ""


def likeness(ours: Array, expected: Array, limit: float) -> str:
    """How `expected` is `ours`: as it is, transposed or reshaped; or nothing."""
    if ours.size != expected.size or not ours.size or ours.ndim > 5:
        return ""
    first, second = wide(ours), wide(expected)
    limit = min(limit, 1e-3)  # beyond it, agreement may be chance
    with np.errstate(all="ignore"):
        # Equal entries fit in any order. Most other arrays differ in the largest entry.
        close = limit * largest(second)
        if not second.max() - second.min() > close >= abs(first.max() - second.max()):
            return ""
    changed = {"equal": ours}
    for axes in permutations(range(ours.ndim)):
        changed[f"equal after .transpose{axes}"] = ours.transpose(axes)
    changed[f"equal after .reshape{expected.shape}"] = ours.reshape(expected.shape)
    for words, values in changed.items():
        if values.shape == expected.shape and distance(values, expected)[0] <= limit:
            return words
    return ""
