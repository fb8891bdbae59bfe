"""The steps that pictures of the large model show are those of its plans."""

from dataclasses import replace
from itertools import pairwise

import pytest

from notebooks.drawing.steps import EXAMPLE, moments, spans

STRATEGIES = ("data", "zero1", "zero2", "zero3", "tensor", "pipeline")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("devices", [2, 8])
def test_memory_over_time_peaks_where_the_plan_says(strategy: str, devices: int) -> None:
    m, layers = (5, 32 // devices) if strategy == "pipeline" else (1, 32)
    scenario = replace(EXAMPLE, strategy=strategy, devices=devices, microbatches=m)
    kept = list(moments(scenario))
    peaks = {kind: max(held[kind] for _, held in kept) for kind in kept[0][1]}
    planned = {kind: sizes[0] for kind, sizes in scenario.usage().peak.items()}
    assert peaks == pytest.approx(planned)
    assert sum(length for length, _ in kept[:-1]) == 3 * layers * m
    most = max(sum(held.values()) for _, held in kept)
    assert max(scenario.kept()) == pytest.approx(most, rel=0.03)


@pytest.mark.parametrize("strategy", STRATEGIES[:-1])
@pytest.mark.parametrize("link", ["nvlink", "pcie", "ethernet"])
def test_a_drawn_step_takes_as_long_as_predicted(strategy: str, link: str) -> None:
    scenario = replace(EXAMPLE, strategy=strategy, link=link)
    step = spans(scenario)
    passes = [span for span in step if span[0] in ("forward", "backward")]
    messages = [span for span in step if span not in passes]
    for line in (passes, messages):
        assert all(begin >= end - 1e-12 for (*_, end), (*_, begin, _) in pairwise(line))
    ends = {span[:2]: span[3] for span in passes}
    for what, layer, begin, end in messages:
        if what == "sum" and strategy != "tensor":
            assert begin >= ends["backward", layer]
        if strategy == "zero3" and what == "gather":
            assert any(layer == other and start >= end - 1e-12 for _, other, start, _ in passes)
    assert passes[-1][3] - passes[0][2] >= scenario.seconds().parts["compute"] - 1e-9
    # 0.011 is seen where messages are not hidden: drawn, the first gradients wait for a layer.
    assert max(end for *_, end in step) == pytest.approx(scenario.seconds().step, rel=0.02)
