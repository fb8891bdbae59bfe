"""Solutions of the chapter on allreduce, against schedules that are walked message by message."""

import pytest

from common.parallel.schedules import SCHEDULES
from common.scaling.formulas import Link, seconds
from notebooks.exercises.allreduce import busiest, ring_beats_halving_from

LINK = Link(latency=5e-6, per_byte=1 / 25e9, per_byte_added=1 / 500e9)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_the_busiest_device_of_a_ring_moves_what_its_schedule_says(k: int) -> None:
    sizes = [60 * k, 12 * k, k]
    messages, moved = busiest("ring", k, sizes)
    walked = [SCHEDULES["ring"](k) for _ in sizes]
    assert messages == sum(len(schedule.rounds) for schedule in walked)
    sent = zip(*(each.traffic(n) for each, n in zip(walked, sizes, strict=True)), strict=True)
    assert moved == 4 * max(sum(pair[0] for pair in device) for device in sent)


@pytest.mark.parametrize("k", [3, 6, 48])
def test_the_length_is_where_the_ring_begins_to_win(k: int) -> None:
    least = ring_beats_halving_from(k, LINK)
    assert least is not None

    def gain(n: int) -> float:
        return seconds("halving", k, n, LINK) - seconds("ring", k, n, LINK)

    assert gain(least) > 0
    assert gain(least - 1) <= 0
    assert gain(100 * least) > 0


@pytest.mark.parametrize("k", [2, 16])
def test_a_ring_never_beats_halving_on_powers_of_two(k: int) -> None:
    assert ring_beats_halving_from(k, LINK) is None
