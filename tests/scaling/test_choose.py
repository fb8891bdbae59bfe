"""The plans that are chosen are the fastest that fit."""

from dataclasses import replace
from typing import Any

import pytest

from common.base.errors import RequestError, RunError
from common.plan import main
from common.scaling.choose import candidates, choose, kept
from common.scaling.scenario import Scenario

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


def test_every_candidate_keeps_what_its_plan_keeps() -> None:
    found = list(candidates(SMALL))
    assert {(plan.strategy, plan.replicas) for plan in found} == {
        ("data", 6),
        *((name, n) for name in ("tensor", "zero1", "zero2", "zero3") for n in (1, 2, 3)),
        *(("pipeline", n) for n in (2, 3)),  # three blocks are no six stages
    }
    assert {plan.microbatches for plan in found if plan.strategy == "zero3"} == {1, 2, 4}
    assert {plan.microbatches for plan in found if plan.replicas == 2} == {1, 2, 3, 4, 6, 12}
    assert all(plan.strategy == "tensor" for plan in candidates(replace(SMALL, examples=16)))
    assert all(plan.strategy != "data" for plan in candidates(replace(SMALL, examples=8 * 16)))
    for plan in found:
        assert kept(plan) == max(plan.usage().kept())
        time = plan.seconds()
        assert time.step == pytest.approx(sum(time.parts.values()))
        assert list(time.parts.values()) == sorted(time.parts.values(), reverse=True)
        assert 0 < time.used < 0.5


@pytest.mark.parametrize("memory", [3e8, 4e8, 1e9])
def test_the_fastest_that_fit_are_chosen(memory: float) -> None:
    found = choose(SMALL, memory)
    times = [plan.seconds().step for plan in candidates(SMALL) if kept(plan) <= memory]
    steps = [seconds.step for _, seconds, _ in found]
    assert steps[0] == min(times)
    assert steps == sorted(steps)
    assert all(size <= memory for _, _, size in found)
    assert not any(plan.schedule == "gpipe" for plan, _, _ in found)  # 1F1B is as fast
    assert len({(plan.strategy, plan.replicas) for plan, _, _ in found}) == len(found)


def test_if_nothing_fits_it_says_by_how_much() -> None:
    least = min(map(kept, candidates(SMALL)))
    with pytest.raises(RunError, match=rf"keeps {least / 1e9:.3g} GB, .* GB more") as caught:
        choose(SMALL, least - 1)
    assert caught.value.status == 1
    assert choose(SMALL, least)[0][2] == least
    with pytest.raises(RunError, match="a multiple of --sequence"):
        choose(replace(SMALL, examples=15), 1e12)


@pytest.mark.parametrize(("hidden", "heads"), [(0, 7), (42, 0), (1000, 4), (128, 8)])
def test_heads_divide_the_hidden_size_and_devices_the_heads(hidden: int, heads: int) -> None:
    scenario = replace(SMALL, hidden=hidden, heads=heads)
    if hidden == 42:
        with pytest.raises(RequestError, match="8 heads do not divide a hidden size of 42"):
            choose(scenario, 1e12)
        return
    for plan in candidates(scenario):
        blocks = plan.network().blocks
        assert blocks
        assert blocks.hidden % blocks.heads == 0
        assert plan.strategy != "tensor" or blocks.heads % (plan.devices // plan.replicas) == 0


SHOWN = ["--net=transformer", "--parameters=13e9", "--layers=40", "--devices=8", "--card=a100"]


def test_the_command_says_what_bounds_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--choose", *SHOWN, "--precision=mixed", "--optimizer=adam"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 + 5
    first, second = lines[4], lines[6]
    assert first.startswith("| zero3 | 1 | 1 |  | none | 1.1 | 74.5 | 7% | compute 100% |")
    assert second.startswith("| tensor | 2 | 4 |  | none | 1.19 |")
    assert second.endswith("| compute 92% | tensor 8% | 100 ms more tensor |")
    main([*SHOWN, "--strategy=tensor", "--recompute=full", "--peak-share=0.4"])
    how: Any = {"net": "transformer", "parameters": 13 * 10**9, "layers": 40, "devices": 8}
    how |= {"strategy": "tensor", "recompute": "full", "card": "a100", "peak_share": 0.4}
    time = Scenario(examples=16_384, **how).seconds()
    said = capsys.readouterr().out
    assert f"a step takes {time.step:.2f} s: compute {time.parts['compute']:.2f} s, tensor " in said
    main(["--net=transformer", "--layers=40", "--card=a100", "--hidden=1024"])
    assert capsys.readouterr().out.startswith("transformer parameters 504,000,000 ")
    main([*SHOWN, "--examples=100"])
    assert "| messages | seconds |" in capsys.readouterr().out


def test_links_and_peak_can_be_numbers() -> None:
    named = replace(SMALL, strategy="zero3", link="pcie").seconds()
    assert replace(SMALL, strategy="zero3", link="5.7e-6,25e9").seconds() == named
    assert replace(SMALL, strategy="zero3", link="pcie", peak=312e12).seconds() == named
    with pytest.raises(RequestError, match="'1,0' is no link: ask for nvlink"):
        replace(SMALL, link="1,0").seconds()
    with pytest.raises(SystemExit, match="2"):
        main([*SHOWN, "--peak-share=1.1"])
