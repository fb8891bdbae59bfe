"""Compares two sets of arrays by name, and finds those under another name or in another order."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from math import isqrt, prod
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError
from common.compare.distances import compare, distance, finite, largest, wide
from common.compare.findings import HEADINGS, Check, farthest, nearest_to_failing
from common.terminal.tables import listed

INVARIANT: Final[tuple[Callable[[Array], float], ...]] = (
    lambda values: float(values.flat[0]),
    lambda values: float(values.flat[-1]),
    lambda values: float(values.max()),
    lambda values: float(values.min()),
)
"""What no transpose or reshape changes."""


@dataclass(frozen=True)
class PairVerdict:
    """The verdict on two, by array or check; with `differences` in the setting, neither.

    Arrays that are `moved` are equal under another name or in another order.
    """

    checks: list[Check]
    notes: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    moved: frozenset[str] = frozenset()

    @property
    def passed(self) -> bool:
        return not self.differences and all(check.passed for check in self.checks)

    @property
    def conclusion(self) -> str:
        if self.differences:
            return f"not comparable, as the settings differ: {'; '.join(self.differences)}"
        what = "checks" if self.checks[0].check else "arrays"
        failed = [check for check in self.checks if not check.passed]
        diverged = [check for check in failed if check.array not in self.moved]
        moved = [check for check in failed if check.array in self.moved]
        of_all = f"of {len(self.checks)} {what}"
        elsewhere = "under another name or in another order"
        if diverged:
            first = f"first in {heading(diverged[0])}: {described(diverged[0])}"
            said = f"they diverge in {len(diverged)} {of_all}, {first}"
            return f"{said}; equal {elsewhere}: {len(moved)} more" if moved else said
        if moved:
            first = f"first {moved[0].array}: {moved[0].note}"
            return f"the same, but {elsewhere}: {len(moved)} {of_all}, {first}"
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
    limits = {n: allowed(ours[n], expected[n], tolerance) for n in ours if n in expected}
    distances = compare(ours, expected, "")
    equal = {d.array for d in distances if d.far <= limits.get(d.array, -1)}
    search = Search({n: ours[n] for n in ours if n not in equal}, tolerance)
    checks, moved = [], set[str]()
    for far in distances:
        name = far.array
        note = differing(ours.get(name), expected.get(name))
        if name not in equal and (hint := search.hint(name, ours, expected)):
            moved.add(name)
            note = joined(note, hint)
        if name in expected or name not in search.used:  # else it is in the line of its other name
            check = farthest("", [far], limits.get(name))
            check.where = far.where.removeprefix(name) if far.far else ""
            check.note = note
            checks.append(check)
    return PairVerdict(checks, moved=frozenset(moved))


def allowed(ours: Array, expected: Array, tolerance: float | None) -> float:
    """The tolerance, else the coarser dtype's epsilon: roundings are off by half."""
    if tolerance is not None:
        return tolerance
    dtypes = [values.dtype for values in (ours, expected) if values.dtype.kind == "f"]
    stored = [dtype.metadata or {"epsilon": float(np.finfo(dtype).eps)} for dtype in dtypes]
    return max((each["epsilon"] for each in stored), default=0.0)


def differing(ours: Array | None, expected: Array | None) -> str:
    """What there is to say of two arrays besides their distance and order."""
    if ours is None or expected is None:
        return f"is only in the {'second' if ours is None else 'first'}"
    if ours.shape != expected.shape:
        return f"{ours.shape} and {expected.shape}"
    both = {"first": ours, "second": expected}
    if unsound := [which for which in both if not finite(both[which])]:
        return f"NaN or infinity in the {' and the '.join(unsound)}"
    return f"{ours.dtype} and {expected.dtype}" if ours.dtype != expected.dtype else ""


def joined(*said: str) -> str:
    return "; ".join(filter(None, said))


@dataclass
class Search:
    """Finds arrays among the first's `unmatched`, which the second's of their names do not equal.

    Those found are `used`; one with equal entries is found only once.
    """

    unmatched: Mapping[str, Array]
    tolerance: float | None
    used: set[str] = field(default_factory=set)

    def hint(self, name: str, ours: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
        """Where the numbers of an array are that does not equal the one of its name."""
        if name in ours and name in expected:
            how = next(self.alike(expected[name], [name]), ("", ""))[1]
            return how or ("" if constant(expected[name]) else self.elsewhere(expected[name]))
        arrays = ours if name in ours else expected
        shared = [twin for twin in arrays if twin in ours and twin in expected]
        for twin in shared if not constant(arrays[name]) else ():
            if likeness(arrays[name], arrays[twin], 0.0) == "equal":
                return f"equals {twin}"
        return self.elsewhere(expected[name]) if name in expected else ""

    def elsewhere(self, expected: Array) -> str:
        alike = dict(self.alike(expected, self.unmatched))
        how = min(alike.values(), key=len, default="")
        names = [name for name in alike if alike[name] == how]
        new = [name for name in names if name not in self.used]
        if not names or (constant(expected) and not new):
            return ""
        self.used.update(new[:1] if constant(expected) else names)
        more = [f"{len(names) - 3} more"] if len(names) > 3 else []
        return f"the first's {listed([*names[:3], *more])} {'are' if names[1:] else 'is'} {how}"

    def alike(self, expected: Array, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Which of these arrays are `expected`, and how."""
        size, most = largest(expected), chance(expected)
        for name in names:
            values = self.unmatched[name]
            close = min(allowed(values, expected, self.tolerance) * size, most)
            if how := likeness(values, expected, close):
                yield name, how


def likeness(ours: Array, expected: Array, close: float) -> str:
    """How `expected` is `ours`, as a NumPy expression, to within `close`; or nothing."""
    if ours.size != expected.size or not ours.size:
        return ""
    if not all(abs(mark(ours) - mark(expected)) <= close for mark in INVARIANT):
        return ""
    for expression, values in arrangements(ours, expected, close):
        if values.shape == expected.shape and distance(values, expected, 1.0)[0] <= close:
            return f"equal after {expression}" if expression else "equal"
    return ""


def arrangements(ours: Array, expected: Array, close: float) -> Iterator[tuple[str, Array]]:
    """Expressions that may make `expected` of `ours`, simple ones first, with their values."""
    yield "", ours
    if constant(expected):  # its entries fit in any order
        return
    for axes in permutations(range(ours.ndim)) if ours.ndim <= 5 else ():
        yield f".transpose{axes}", ours.transpose(axes)
    yield f".reshape{expected.shape}", ours.reshape(expected.shape)
    for strided in strides(wide(ours).ravel(), wide(expected).ravel(), close):
        outer_first = sorted(strided, key=lambda axis: -axis[1])
        shape = tuple(length for length, _ in outer_first)
        if all(stride == prod(shape[n:]) for n, (_, stride) in enumerate(outer_first, 1)):
            order = tuple(outer_first.index(axis) for axis in reversed(strided))
            values = ours.reshape(shape).transpose(order)
            expression = f".reshape{shape}" if shape != ours.shape else ""
            expression += f".transpose{order}"
            expression += f".reshape{expected.shape}" if values.shape != expected.shape else ""
            yield expression, values.reshape(expected.shape)


def strides(
    ours: Array, expected: Array, close: float, inner: tuple[tuple[int, int], ...] = ()
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Splits `expected`, which is flat, into axes that are strided in `ours`, the last one first.

    An axis is a length and a stride. `inner` are the axes that are known; for them the next axis
    repeats, and the first and the last entry of each repetition have to fit.
    """
    block = prod(length for length, _ in inner)
    last = sum((length - 1) * stride for length, stride in inner)
    if block == len(expected):
        yield inner
        return
    longest = []
    for stride in divisors(len(expected)):
        fits = min(
            fitting(ours[::stride], expected[::block], close),
            fitting(ours[last::stride], expected[block - 1 :: block], close),
        )
        length = max((n for n in divisors(len(expected) // block) if n <= fits), default=1)
        if length > 1:
            longest.append((length, stride))
    for axis in sorted(longest, reverse=True)[:3]:  # more than one fits if entries are equal
        yield from strides(ours, expected, close, (*inner, axis))


def fitting(ours: Array, expected: Array, close: float) -> int:
    """How many of the first entries are equal."""
    count = min(len(ours), len(expected))
    wrong = ~(np.abs(ours[:count] - expected[:count]) <= close)
    return int(wrong.argmax()) if wrong.any() else count


def divisors(number: int) -> list[int]:
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


def constant(values: Array) -> bool:
    return values.size < 2 or bool((values == values.flat[0]).all())


def chance(values: Array) -> float:
    """A share of the standard deviation: farther apart, arrays may be similar by chance."""
    with np.errstate(all="ignore"):
        return float(wide(values).std()) / 25 if values.size else 0.0
