"""Every schedule sums, and what it takes is what the page's formulas say, and what is measured."""

from collections.abc import Sequence
from math import ceil, log2
from statistics import median
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Array
from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES, Schedule
from common.scaling.cluster import Link, path, seconds, with_prefix
from common.scaling.measure import Compared, Costs, Laboratory, costs_of, trials


def sums(schedule: Schedule) -> Array:
    """The sums (devices, chunks) in the end, by another walk than `execute`.

    Device d starts with 2**d in every chunk: a sum shows its terms, also one that is added twice.
    """
    held = np.repeat(2 ** np.arange(schedule.devices)[:, None], schedule.chunks, axis=1)
    for transfers in schedule.rounds:
        before = held.copy()
        for t in transfers:
            part = slice(t.chunks.start, t.chunks.stop)
            held[t.target, part] = held[t.target, part] * t.adds + before[t.source, part]
    return held


@pytest.mark.parametrize("k", range(2, 41))
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_takes_what_the_page_says(name: str, k: int) -> None:
    n, p = 16 * k * 32, 2 ** int(log2(k))
    levels, extra = ceil(log2(k)), k > p
    moved = {
        "star": 2 * (k - 1) * n,
        "tree": 2 * levels * n,
        "halving": 2 * (p - 1) * n // p + 2 * n * extra,
    }.get(name, 2 * (k - 1) * n // k)
    messages = {"tree": 2 * levels, "halving": 2 * int(log2(k)) + 2 * extra}
    schedule = SCHEDULES[name](k)
    found = path(schedule, n)
    assert (found.messages, found.moved) == (messages.get(name, 2 * (k - 1)), moved)
    assert found.added == moved // 2
    link = Link(latency=3.0, per_byte=5.0, per_byte_added=7.0)
    expected = 3 * found.messages + 5 * 4 * moved + 7 * 4 * moved // 2
    assert seconds(name, k, n, link) == pytest.approx(expected)
    assert len(schedule.rounds) == (2 if name in ("star", "sharded") else found.messages)
    sent, received = zip(*schedule.traffic(n), strict=True)
    assert (sent, sum(sent)) == (received, 2 * (k - 1) * n)
    assert (sums(schedule) == 2**k - 1).all()  # each device has each term once


def test_costs_and_predictions_by_hand() -> None:
    ends, sent, added = trials(4)
    # 4 times, 4 chunks are sent: the message of one takes 3 s, its addition 5 s.
    times = {ends: 14.0, sent: 14.0 + 16 * 3, added: 14.0 + 16 * (3 + 5)}
    costs = costs_of(4, times)
    assert costs == Costs(7, 3, 5)
    # Every device sends 2 + 1 + 1 + 2 chunks; half of them are added.
    assert Compared(8, 4, "halving", 1.0, costs).predicted() == 4 * 7 + 24 * 3 + 12 * 5
    assert Compared(8, 3, "star", 1.0, costs).predicted() == 3 * 7 + 4 * 3 + 2 * 5
    assert costs_of(4, {**times, sent: 13.0, added: 12.0}) == Costs(7, 0, 0)
    assert Compared(8, 3, "native", 1.0, None).predicted() is None
    # Where k does not divide n, the largest chunk counts.
    assert path(SCHEDULES["ring"](3), 10)[1:] == (4 * 4, 2 * 4)
    assert (with_prefix(4, "B"), with_prefix(0.9996e-3, "s")) == ("4.00 B", "1.00 ms")


def test_predictions_are_near_what_is_measured(scratch: Any, all_devices: Sequence[Any]) -> None:
    lab = Laboratory(scratch, all_devices[:2])
    compared = lab.compare(100_000, ALLREDUCES, budget=5)
    assert {call.algorithm for call in compared} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    ratios = [time / call.measured for call in compared if (time := call.predicted())]
    assert 1 / 3 < median(ratios) < 3
