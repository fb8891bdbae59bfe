"""The verdict on two, in data and in words: every array of both, and whether they diverge."""

import math
from collections.abc import Iterable

from pydantic import BaseModel


class ArrayPair(BaseModel):
    """One array of both; its distance is relative to the largest entry of the second.

    NaN, another shape, and an array that only one of both has: these have no distance. There is no
    limit where training has amplified rounding so much that nothing can be demanded.
    """

    array: str
    check: str = ""
    distance: float | None = None
    limit: float | None
    where: str = ""
    passed: bool
    note: str = ""
    hint: str = ""


class PairVerdict(BaseModel):
    """The verdict on two: if `passed`, the same, as far as the limits tell.

    `arrays` are in the order in which a run computes them, and then in the net's. `differences`
    are what makes two runs no comparison: of such runs no array is looked at.
    """

    passed: bool
    conclusion: str
    differences: list[str] = []
    notes: list[str] = []
    arrays: list[ArrayPair] = []


def pair_verdict(pairs: list[ArrayPair], notes: Iterable[str] = ()) -> PairVerdict:
    """Passed, if every pair has."""
    passed = all(pair.passed for pair in pairs)
    if passed:
        conclusion = _agreement(pairs)
    else:
        failed = [pair for pair in pairs if not pair.passed]
        where = f"{len(failed)} of {len(pairs)} arrays, first in {describe(failed[0])}"
        conclusion = f"they diverge in {where}"
    return PairVerdict(passed=passed, conclusion=conclusion, notes=list(notes), arrays=pairs)


def share_of_limit(pair: ArrayPair) -> float:
    """A distance as a share of its limit; infinite where there is no distance."""
    if pair.limit is None and pair.passed:
        return 0.0
    if pair.distance is None:
        return math.inf
    return pair.distance / pair.limit if pair.limit else pair.distance


def _agreement(pairs: list[ArrayPair]) -> str:
    judged = [pair for pair in pairs if pair.limit is not None]
    worst = max(judged, key=share_of_limit)
    if not any(pair.distance for pair in pairs):
        return f"the same: all {len(pairs)} arrays are equal"
    which = f"{len(judged)} arrays"
    if len(judged) < len(pairs):
        which = f"the {len(judged)} of {len(pairs)} arrays that have one"
    return (
        f"the same within the limit: {which}; the farthest is {worst.array}, "
        f"{worst.distance:.1e} where {worst.limit:.1e} is allowed"
    )


def describe(pair: ArrayPair) -> str:
    """How the arrays of a pair diverge, in a line."""
    if pair.distance is None:
        return remark(pair)
    limit = "" if pair.limit is None else f", at most {pair.limit:.1e} is allowed"
    figure = f"{pair.distance:.1e} at {pair.where or 'the only entry'}{limit}"
    return "; ".join(filter(None, (f"{pair.array}: {figure}", pair.note, pair.hint)))


def remark(pair: ArrayPair) -> str:
    """What there is to say of a pair besides its distance, in a line; empty if there is nothing."""
    said = "; ".join(filter(None, (pair.note, pair.hint)))
    return f"{pair.array}: {said}" if said else ""
