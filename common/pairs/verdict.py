"""The verdict on two, in data and in words: every array of both, and whether they diverge."""

from collections.abc import Iterable

from pydantic import BaseModel


class ArrayPair(BaseModel):
    """One array of both; its distance is relative to the largest entry of the second.

    There is no distance for NaN, another shape, or an array of one alone, and no limit where
    training amplifies rounding too much.
    """

    array: str
    check: str = ""
    distance: float | None = None
    limit: float | None = None
    where: str = ""
    passed: bool = False
    note: str = ""
    hint: str = ""


class PairVerdict(BaseModel):
    """The verdict on two: if `passed`, the same, as far as the limits tell.

    If two runs have `differences` in their setting, no array is compared.
    """

    passed: bool
    conclusion: str
    differences: list[str] = []
    notes: list[str] = []
    arrays: list[ArrayPair] = []


def pair_verdict(pairs: list[ArrayPair], notes: Iterable[str] = ()) -> PairVerdict:
    """Passed, if every pair has."""
    if failed := [pair for pair in pairs if not pair.passed]:
        where = f"{len(failed)} of {len(pairs)} arrays, first in {describe(failed[0])}"
        conclusion = f"they diverge in {where}"
    else:
        conclusion = _agreement(pairs)
    return PairVerdict(passed=not failed, conclusion=conclusion, notes=list(notes), arrays=pairs)


def _agreement(pairs: list[ArrayPair]) -> str:
    if not any(pair.distance for pair in pairs):
        return f"the same: all {len(pairs)} arrays are equal"
    limited = [pair for pair in pairs if pair.limit is not None]
    worst = max(limited, key=lambda pair: (pair.distance or 0) / (pair.limit or 1))
    return (
        f"the same within the limit: {len(limited)} arrays; the farthest is {worst.array}, "
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
