"""Pipelines: in which order the stages of a net pass the microbatches of a minibatch.

A run carries out an order, and `simulate` predicts when each pass begins and ends.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, combinations, pairwise
from typing import Final, NamedTuple


class Pass(NamedTuple):
    """One microbatch through one stage: forward, or backward."""

    stage: int
    microbatch: int
    forward: bool


Order = Sequence[Sequence[Pass]]
"""The passes of each device, in order; a device has one stage."""


def naive(stages: int, microbatches: int) -> Order:
    """Each microbatch goes forward and back before the next one: one stage works at a time."""
    return [
        [Pass(stage, i, forward) for i in range(microbatches) for forward in (True, False)]
        for stage in range(stages)
    ]


def gpipe(stages: int, microbatches: int) -> Order:
    """All microbatches go forward, then all go back, as in GPipe (Huang et al., 2019)."""
    return [
        [Pass(stage, i, forward) for forward in (True, False) for i in range(microbatches)]
        for stage in range(stages)
    ]


def one_forward_one_backward(stages: int, microbatches: int) -> Order:
    """1F1B: each stage has as many microbatches in flight as there are stages from it to the last.

    As in PipeDream (Narayanan et al., 2019), but all passes end before the update (Narayanan et
    al., 2021).
    """
    return [list(_alternating(stage, stages - stage, microbatches)) for stage in range(stages)]


def _alternating(stage: int, ahead: int, microbatches: int) -> Iterator[Pass]:
    """The passes of a stage with at most `ahead` microbatches in flight."""
    for i in range(microbatches + ahead - 1):
        if i < microbatches:
            yield Pass(stage, i, forward=True)
        if 0 <= i - ahead + 1 < microbatches:
            yield Pass(stage, i - ahead + 1, forward=False)


ORDERS: Final[dict[str, Callable[[int, int], Order]]] = {
    "naive": naive,
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
}
"""The orders that runs carry out."""


class TimedPass(NamedTuple):
    """A pass, and when it begins and ends."""

    done: Pass
    begin: float
    end: float


def needed(one: Pass, stages: int) -> list[Pass]:
    """The passes whose results a pass needs."""
    if one.forward:
        return [one._replace(stage=one.stage - 1)] if one.stage else []
    after = [one._replace(stage=one.stage + 1)] if one.stage + 1 < stages else []
    return [one._replace(forward=True), *after]


def simulate(order: Order, seconds: Callable[[Pass], float] = lambda _: 1.0) -> list[TimedPass]:
    """When each pass begins and ends if messages take no time, the earliest first.

    Each comes after those that it needs. Raises ValueError if stages wait for each other for ever.
    """
    ends: dict[Pass, float] = {}
    events = []
    waiting = [list(reversed(passes)) for passes in order]
    free = [0.0] * len(order)
    stages = 1 + max(one.stage for passes in order for one in passes)
    while any(waiting):
        ready = []
        for device, passes in enumerate(waiting):
            before = needed(passes[-1], stages) if passes else []
            if passes and ends.keys() >= set(before):
                begin = max([free[device], *map(ends.__getitem__, before)])
                ready.append((begin, passes[-1], device))
        if not ready:
            raise ValueError("these stages wait for each other for ever")
        begin, one, device = min(ready)
        free[device] = ends[one] = begin + seconds(one)
        events.append(TimedPass(one, begin, ends[one]))
        waiting[device].pop()
    return events


def bubble(events: Sequence[TimedPass], devices: int) -> float:
    """The share of all devices' time in which they wait, between 0 and 1."""
    busy = sum(event.end - event.begin for event in events)
    return 1 - busy / (devices * max(event.end for event in events))


def most_live(passes: Sequence[Pass]) -> int:
    """The most microbatches in flight: passed forward, not yet back."""
    return max(accumulate((1 if one.forward else -1 for one in passes), initial=0))


def balanced(work: Sequence[float], stages: int) -> list[range]:
    """The layers of each stage, such that the most work of a stage is least.

    Of equals, the first stages have the fewest layers. Raises ValueError if there are fewer layers
    than stages.
    """
    if not 0 < stages <= len(work):
        raise ValueError(f"{len(work)} layers cannot be cut into {stages} stages")
    before = list(accumulate(work, initial=0))

    def cut(limit: float) -> list[int]:
        """Where the stages begin and end, filled from the last one on; no start at 0: too much."""
        cuts = [len(work)]
        for stage in reversed(range(stages)):  # each of those before takes a layer at least
            begins = range(stage, cuts[0])
            fits = (begin for begin in begins if before[cuts[0]] - before[begin] <= limit)
            cuts.insert(0, next(fits, cuts[0]))
        return cuts

    limits = sorted({b - a for a, b in combinations(before, 2)})
    limit = limits[bisect_left(limits, True, key=lambda limit: cut(limit)[0] == 0)]
    return [range(a, b) for a, b in pairwise(cut(limit))]


def by_hand(counts: Sequence[int]) -> list[range]:
    """The layers of each stage, from their numbers."""
    return [range(a, b) for a, b in pairwise(accumulate(counts, initial=0))]
