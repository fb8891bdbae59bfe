"""The plans that are chosen are the fastest that fit."""

from dataclasses import replace
from typing import Any

import pytest

from common.base.errors import RequestError, RunError
from common.plan import main
from common.scaling.choose import candidates, choose
from common.scaling.scenario import Scenario
from common.scaling.steps import stages

SMALL = Scenario(
    net="transformer",
    parameters=40_000_000,
    layers=3,
    heads=12,
    sequence=16,
    devices=6,
    examples=6 * 16 * 4,
    precision="mixed",
    optimizer="adam",
    card="a100",
    node=3,
    between="ethernet",
)


def kept(plan: Scenario) -> int:
    return max(plan.kept())


def test_candidates_are_all_meshes_that_share_the_sequences() -> None:
    found = list(candidates(SMALL))
    assert {(plan.tensor, plan.pipeline, plan.shards, plan.replicas) for plan in found} == {
        *((1, 1, 1, 6), (1, 1, 2, 3), (1, 1, 3, 2), (1, 1, 6, 1), (2, 1, 1, 3), (3, 1, 1, 2)),
        *((1, 2, 1, 3), (1, 2, 3, 1), (1, 3, 1, 2), (1, 3, 2, 1)),  # three blocks are no 6 stages
        *((2, 1, 3, 1), (2, 3, 1, 1), (3, 1, 2, 1), (3, 2, 1, 1)),  # in a node of three are no 6
    }
    assert {plan.microbatches for plan in found if plan.shards == 6} == {1, 2, 4}
    assert all(plan.microbatches % plan.pipeline == 0 for plan in found if plan.chunks > 1)
    assert any(plan.spread for plan in found)
    for plan in found:
        time = plan.seconds()
        assert time.step == pytest.approx(sum(time.parts.values()))
        assert list(time.parts.values()) == sorted(time.parts.values(), reverse=True)
        assert 0 < time.used < 0.62


@pytest.mark.parametrize(
    ("strategy", "mesh"),
    [
        ("data", {"replicas": 6}),
        ("tensor", {"tensor": 6}),
        ("pipeline", {"pipeline": 3, "replicas": 2}),
        *((f"zero{n}", {"shards": 3, "replicas": 2}) for n in (1, 2, 3)),
    ],
)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_strategy_is_a_mesh(strategy: str, mesh: dict[str, int], recompute: str) -> None:
    named = replace(SMALL, strategy=strategy, replicas=mesh.get("replicas", 1), recompute=recompute)
    peaks = [peak for peak, _, _ in stages(named.network(), named.degrees(), 384, (2, 12))]
    for kind, planned in named.usage().peak.items():
        assert max(peak[kind] for peak in peaks) == pytest.approx(max(planned), rel=0.01)
    if strategy != "data":
        name = strategy if "zero" in strategy else "data"
        meshed = replace(SMALL, strategy=name, **mesh, recompute=recompute)  # type: ignore[arg-type]
        assert meshed.seconds() == named.seconds()
        assert max(meshed.kept()) == max(named.kept())


@pytest.mark.parametrize("memory", [3e8, 4e8, 1e9])
def test_the_fastest_that_fit_are_chosen(memory: float) -> None:
    found = choose(SMALL, memory)
    times = [plan.seconds().step for plan in candidates(SMALL) if kept(plan) <= memory]
    steps = [seconds.step for _, seconds, _ in found]
    assert steps[0] == min(times)
    assert steps == sorted(steps)
    assert all(size <= memory for _, _, size in found)
    assert len({(plan.strategy, plan.tensor, plan.pipeline) for plan, _, _ in found}) == len(found)


def test_if_nothing_fits_it_says_what_the_smallest_keeps() -> None:
    least = min(map(kept, candidates(SMALL)))
    with pytest.raises(RunError, match=f"keeps {least / 1e6:.3g} MB") as caught:
        choose(SMALL, least - 1)
    assert caught.value.status == 1
    assert choose(SMALL, least)[0][2] == least
    with pytest.raises(RunError, match="a multiple of --sequence"):
        choose(replace(SMALL, examples=15), 1e12)


def test_heads_divide_the_hidden_size_and_devices_the_heads() -> None:
    for plan in candidates(replace(SMALL, hidden=1000, heads=4)):
        assert 4 % plan.tensor == 0
    with pytest.raises(RequestError, match="3 heads of keys do not divide 8"):
        choose(replace(SMALL, hidden=64, heads=8, kv_heads=3), 1e12)


SHOWN = ["--net=transformer", "--parameters=13e9", "--layers=40", "--devices=8", "--card=a100"]


def test_the_command_says_what_bounds_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--choose", *SHOWN])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 + 5
    first, second = lines[4], lines[6]
    assert first.startswith("| 1 | 1 | 4 | 1 | False | zero3 | 2 | 1 | none | 0.885 | 60.4 | 24% |")
    assert second.startswith("| 2 | 1 | 2 | 1 | False | zero1 | 2 | 1 | none | 0.938 |")
    assert second.endswith("| compute 94% | tensor 3% | 26.5 ms more data |")
    main([*SHOWN, "--strategy=tensor", "--recompute=full", "--peak-share=0.4"])
    how: Any = {"net": "transformer", "parameters": 13 * 10**9, "layers": 40, "devices": 8}
    how |= {"strategy": "tensor", "recompute": "full", "card": "a100", "peak_share": 0.4}
    how |= {"precision": "mixed", "optimizer": "adam"}
    time = Scenario(examples=16_384, **how).seconds()
    said = capsys.readouterr().out
    assert f"a step takes {time.step:.2f} s: compute {time.parts['compute']:.2f} s, tensor " in said
    main([*SHOWN, "--examples=100"])
    assert "| messages | seconds |" in capsys.readouterr().out


def test_links_and_peak_can_be_numbers() -> None:
    named = replace(SMALL, strategy="zero3", link="pcie").seconds()
    assert replace(SMALL, strategy="zero3", link="5.7e-6,24e9").seconds() == named
    assert replace(SMALL, strategy="zero3", link="pcie", peak=312e12).seconds() == named
    with pytest.raises(SystemExit, match="2"):
        main([*SHOWN, "--peak-share=1.1"])
