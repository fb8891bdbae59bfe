"""Orders of a pipeline, and how long they take."""

import pytest
from hypothesis import given, strategies as st

from common.parallel.nets import balanced
from common.parallel.pipelines import (
    IN_FLIGHT,
    Pass,
    bubble,
    most_live,
    needed,
    order,
    simulate,
)

stages = st.integers(1, 9)
microbatches = st.integers(1, 12)


@given(st.sampled_from(sorted(IN_FLIGHT)), stages, microbatches)
def test_every_stage_passes_every_microbatch_both_ways_after_what_that_needs(
    name: str, p: int, m: int
) -> None:
    stage_passes = order(name, p, m)
    for stage, passes in enumerate(stage_passes):
        kinds = ("forward", "input", "weights") if name == "zb1" else ("forward", "backward")
        every = [Pass(stage, i, kind) for i in range(m) for kind in kinds]
        assert sorted(passes) == sorted(every)
    done: set[Pass] = set()
    for event in simulate(stage_passes):
        assert done >= set(needed(event.done, p))
        done.add(event.done)


@given(stages, microbatches)
def test_1f1b_saves_memory_and_not_time(p: int, m: int) -> None:
    ends = {}
    for name in ("gpipe", "1f1b"):
        stage_passes = order(name, p, m)
        events = simulate(stage_passes)
        ends[name] = max(event.end for event in events)
        assert bubble(events, p) == pytest.approx((p - 1) / (m + p - 1))
        live = [most_live(passes) for passes in stage_passes]
        assert live == [m if name == "gpipe" else min(m, p - stage) for stage in range(p)]
    assert ends["gpipe"] == ends["1f1b"] == 3 * (m + p - 1)


@given(stages, microbatches)
def test_zb1_saves_time_and_the_first_device_keeps_as_much(p: int, m: int) -> None:
    stage_passes = order("zb1", p, m)
    ends = [max(x.end for x in simulate(each)) for each in (stage_passes, order("1f1b", p, m))]
    assert ends == [3 * m + p - 1 + max(0, p - m), 3 * (m + p - 1)]
    assert ends[0] < ends[1] or p == 1
    assert [most_live(passes) for passes in stage_passes] == [min(m, p)] * p
    lengths = {"forward": 2, "input": 3, "weights": 1}
    events = simulate(stage_passes, lambda step: lengths[step.kind])
    if m >= p:  # the bubble is (p - 1) (F + B - W), as W is the shortest
        assert max(event.end for event in events) == 6 * m + 4 * (p - 1)


@given(stages, microbatches)
def test_naively_one_stage_works_at_a_time(p: int, m: int) -> None:
    stage_passes = order("naive", p, m)
    events = simulate(stage_passes)
    assert max(event.end for event in events) == 3 * p * m
    assert {most_live(passes) for passes in stage_passes} == {1}


def test_stages_have_as_equal_work_as_can_be() -> None:
    assert balanced((5, 1, 1, 5), 3) == [1, 2, 1]
    assert balanced((1, 2, 3), 1) == [3]
    assert balanced((1,) * 64, 32) == [2] * 32  # there are 1e18 ways to cut
