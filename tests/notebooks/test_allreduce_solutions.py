"""Solutions of the chapter on allreduce, against schedules that are walked message by message."""

import pytest

from common.parallel.schedules import SCHEDULES
from common.scaling.formulas import Link, seconds
from notebooks.exercises.allreduce import busiest, ring_beats_halving_from

LINK = Link(latency=5e-6, per_byte=1 / 25e9, per_byte_added=1 / 500e9)


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_the_busiest_device_of_a_ring_moves_what_its_schedule_says(k: int) -> None:
    sizes = [60 * k, 12 * k, k]
    messages, moved = busiest("ring", k, sizes)
    walked = [SCHEDULES["ring"](k) for _ in sizes]
    assert messages == sum(len(schedule.rounds) for schedule in walked)
    sent = zip(*(each.traffic(n) for each, n in zip(walked, sizes, strict=True)), strict=True)
    assert moved == 4 * max(sum(pair[0] for pair in device) for device in sent)


def test_tensors_apart_cost_messages_and_no_bytes() -> None:
    apart, together = busiest("ring", 8, [800, 80, 8]), busiest("ring", 8, [888])
    assert apart == (3 * together[0], together[1])


@pytest.mark.parametrize("k", [3, 5, 6, 12, 48])
def test_the_length_is_where_the_ring_begins_to_win(k: int) -> None:
    least = ring_beats_halving_from(k, LINK)
    assert least is not None

    def gain(n: int) -> float:
        return seconds("halving", k, n, LINK) - seconds("ring", k, n, LINK)

    assert gain(least) > 0
    assert gain(least - 1) <= 0
    assert gain(100 * least) > 0


@pytest.mark.parametrize("k", [2, 4, 16])
def test_a_ring_never_beats_halving_on_powers_of_two(k: int) -> None:
    assert ring_beats_halving_from(k, LINK) is None
