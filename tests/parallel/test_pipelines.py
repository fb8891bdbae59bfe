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
def test_time_and_memory_are_those_of_the_papers(p: int, m: int) -> None:
    most = {"naive": [1] * p, "gpipe": [m] * p, "zb1": [min(m, p)] * p}
    most["1f1b"] = [min(m, p - stage) for stage in range(p)]
    ends = {"naive": 3 * p * m, "zb1": 3 * m + p - 1 + max(0, p - m)}
    for name in IN_FLIGHT:
        stage_passes, end = order(name, p, m), ends.get(name, 3 * (m + p - 1))
        events = simulate(stage_passes)
        assert max(event.end for event in events) == end
        assert bubble(events, p) == pytest.approx(1 - 3 * m / end)
        assert [most_live(passes) for passes in stage_passes] == most[name]
    lengths = {"forward": 2, "input": 3, "weights": 1}
    events = simulate(order("zb1", p, m), lambda step: lengths[step.kind])
    if m >= p:  # the bubble is (p - 1) (F + B - W), as W is the shortest
        assert max(event.end for event in events) == 6 * m + 4 * (p - 1)


def test_stages_have_as_equal_work_as_can_be() -> None:
    assert balanced((5, 1, 1, 5), 3) == [1, 2, 1]
    assert balanced((1, 2, 3), 1) == [3]
    assert balanced((1,) * 64, 32) == [2] * 32  # there are 1e18 ways to cut
