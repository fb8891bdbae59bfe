"""The figures that a reader changes have the numbers of plans, in words and in tables."""

import json
import re
from collections.abc import Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import walked
from explorer_shown import Shown, a_record

from common.backends.frameworks import FRAMEWORKS
from common.chapters.strategies import STRATEGIES
from common.parallel.ledger import MOVED
from common.parallel.pipelines import IN_FLIGHT, order
from common.parallel.schedules import SCHEDULES
from common.plan import main
from common.scaling.cluster import with_prefix
from common.scaling.scenario import Scenario
from notebooks.drawing.frames import words
from notebooks.explorers.figures import FIGURES, answer, explorer
from notebooks.explorers.forms import size
from notebooks.explorers.moments import STATE, moments
from notebooks.explorers.runs import kept
from notebooks.web import runtime

LINKS = {"pipeline": 5, "memory": 8, "shards": 9}
"""How many links of the page lead to a plan."""

PAGE = (Path(__file__).parents[2] / "docs/explorer.md").read_text(encoding="utf-8")


def links(figure: str) -> Iterator[dict[str, str]]:
    """What the links of the page choose."""
    for link in re.findall(rf'href="(\?{figure}\.[^"#]*)', PAGE):
        pairs = parse_qsl(urlsplit(unescape(link)).query, strict_parsing=True)
        yield {key.removeprefix(f"{figure}."): value for key, value in pairs}


@pytest.mark.parametrize("figure", LINKS)
def test_links_of_the_page_lead_to_what_they_choose(figure: str) -> None:
    assert len(list(links(figure))) == LINKS[figure]
    for choice in links(figure):
        shown = Shown(figure, **choice)
        assert shown.settled["values"].items() >= choice.items()
        assert not shown.text().startswith("There is no such plan")


@pytest.mark.parametrize("figure", FIGURES)
def test_what_is_no_value_is_as_at_first(figure: str) -> None:
    first = Shown(figure)
    controls = [control for row in FIGURES[figure].form for control in row]
    wrong = Shown(figure, **{control.name: "x" for control in controls})
    assert wrong.settled == first.settled
    large = Shown(figure, **{control.name: "1e9" for control in controls if not control.options})
    for control in controls:
        if not (control.options or control.slider):
            assert float(large.settled["values"][control.name]) == control.ends[1]


def test_memory_says_what_fits_and_what_is_sent() -> None:
    shown = Shown("memory")
    assert shown.text() == (
        "Every device fits a card of 24\u00a0GB: device 0, the fullest, fills 1\u00a0% of it. "
        "What takes most: activations, 1.30\u00a0MB of 2.85\u00a0MB there. "
        "A step takes 87.8\u00a0µs: data 79.0\u00a0µs, compute 8.77\u00a0µs; messages of "
        "5.85\u00a0µs overlap. 2,917,340 examples a second use 6.2\u00a0% of the peak."
    )
    large = {"net": "transformer", "millions": 7000, "layers": 32, "devices": 8, "card": 80}
    assert (
        Shown("memory", **large, optimizer="adam")
        .text()
        .startswith(
            "8 of 8 devices do not fit a card of 80\u00a0GB: device 0 keeps 112\u00a0GB. "
            "What takes most: optimizer, 56.0\u00a0GB of 112\u00a0GB there."
        )
    )
    usage = Scenario(strategy="zero2", devices=3).usage()
    rows = Shown("memory", strategy="zero2", devices=3).rows("exact")
    numbers = [[int(cell.replace(",", "")) for cell in row] for row in rows]
    columns = *usage.peak.values(), *usage.sent.values(), *usage.received.values()
    columns = *columns, usage.messages, usage.live
    assert numbers == [[device, *(each[device] for each in columns)] for device in range(3)]
    refused = Shown("memory", strategy="pipeline", devices=7)
    assert refused.text() == f"There is no such plan: {_refusal(7)}."
    assert refused.block("stage").get("hidden") == ""


def test_the_explorer_and_the_command_agree(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--parameters=7e9", "--layers=32", "--devices=8", "--card=h100", "--link=nvlink4"]
    main(["--net=transformer", *flags])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[4:]]
    said = {name.strip("| "): figures for name, *figures in lines}
    choice = {"net": "transformer", "millions": 7000, "layers": 32, "devices": 8, "gpu": "h100"}
    choice |= {"precision": "mixed", "optimizer": "adam", "examples": 16_384, "link": "nvlink4"}
    for name, most, _, messages, step, _ in Shown("memory", **choice).rows("scrolled"):
        fullest, *_, sent, seconds = said[name]
        assert (most, messages) == (size(int(fullest.replace(",", ""))), sent)
        assert step == with_prefix(float(seconds.strip("| ")), "s").replace(" ", "\u00a0")


def _refusal(devices: int) -> str:
    return Scenario(strategy="pipeline", devices=devices).refusal()


def sent(**settings: Any) -> int:
    return sum(Scenario(**settings).usage().all_sent())


def test_what_the_page_says_of_traffic_is_so() -> None:
    assert f"{sent(strategy='tensor', examples=8) / 1e3:.0f} KB" in PAGE
    assert f"{sent(strategy='tensor', examples=256) / 1e6:.1f} MB" in PAGE
    assert f"{sent(strategy='data', examples=8) / 1e6:.2f} MB" in PAGE
    few, data, many, same = (
        sent(net="transformer", strategy=name, examples=n)
        for n, name in product((1024, 2048), ("tensor", "data"))
    )
    assert few < data == same < many
    assert sent(strategy="zero3") == sent(strategy="zero2") * 3 / 2


def test_moments_of_a_step_hold_at_most_and_send_what_a_plan_says() -> None:
    sizes = product(STRATEGIES, (1, 2, 3, 4, 6), (1, 3), (0, 2), IN_FLIGHT)
    for strategy, devices, many, depth, schedule in sizes:
        scenario = Scenario(strategy, devices, 1, many, schedule, depth=depth)
        if scenario.refusal() or (schedule != "1f1b" and strategy != "pipeline"):
            continue
        plan, usage = scenario.plan(), scenario.usage()
        walk = moments(plan)
        for kind, device in product(STATE, range(plan.devices)):
            held = max(moment.held(plan, kind, device) for moment in walk)
            assert 4 * held == usage.peak[kind][device], (scenario, kind)
        total = {kind: sum(moment.sent.get(kind, 0) for moment in walk) for kind in MOVED}
        assert {kind: 4 * size for kind, size in total.items()} == {
            kind: sum(each) for kind, each in usage.sent.items()
        }, scenario
        live = [
            max(counts[device] for moment in walk for counts in moment.inputs.values())
            for device in range(plan.devices)
        ]
        assert live * plan.replicas == usage.live, scenario
        assert walk[0].state == walk[-1].state
        assert not any(map(any, walk[-1].inputs.values()))


def test_a_pipeline_says_what_a_pass_waits_for() -> None:
    shown = Shown("pipeline", stages=3, microbatches=4, step=8)
    assert shown.text() == (
        "Step 8 of 24: Device 1 passes microbatch 0 backward, from 5 to 7. It needs: microbatch 0 "
        "forward on device 1, done at 2; microbatch 0 backward on device 2, done at 5; its "
        "device is free at 3, so it has waited 2. Then it has 1 microbatch in flight."
    )
    assert "Most microbatches in flight: 3, 2, 1." in shown.text("stage")
    assert [each.get("class") for each in shown.tree.iter()].count("pic-box") == 8
    bubbles = [("naive", "75.0\u00a0%"), ("gpipe", "27.3\u00a0%"), ("1f1b", "27.3\u00a0%")]
    for schedule, bubble in bubbles:
        rows = Shown("pipeline", schedule=schedule).rows("tables")
        assert [row[1] for row in rows[1:3]] == [bubble, bubble]
    assert "a device waits 27.3 %" in PAGE.replace("\n", " ")
    assert Shown("pipeline", microbatches=32).rows("tables")[1][1] == "8.6\u00a0%"
    assert "with 32 it is 8.6 %" in PAGE


def test_a_kept_run_stands_beside_its_plan_alone() -> None:
    assert list(kept()) == list(product(FRAMEWORKS, IN_FLIGHT))
    for (_, schedule), run in kept().items():
        assert run.passes() == order(schedule, 4, 8)
    chosen = {"beside": "tensorflow", "stages": 5}
    shown = Shown("pipeline", **chosen, changed="beside")
    assert shown.settled["values"]["stages"] == "4"
    assert "Each device’s order of passes is exactly the plan’s." in shown.text("run")
    events = kept()["tensorflow", "1f1b"].events
    end = max(event.end for event in events)
    waits = 1 - sum(event.end - event.begin for event in events) / 4 / end
    whole, bubble, *_ = shown.rows("tables")
    assert whole[2] == f"{end:.2f}".rstrip("0").rstrip(".") + " ms"
    assert bubble[2] == f"{100 * waits:.1f}\u00a0%"
    assert Shown("pipeline", **chosen, changed="stages").text("refused") == (
        "That run has 4 devices and 8 microbatches, in the order 1F1B: choose these."
    )


def test_a_reader_s_own_record_sets_the_plan() -> None:
    record = json.dumps(a_record("gpipe"))
    shown = Shown("pipeline", beside="own", changed="record", record=record)
    sizes = {"stages": "3", "microbatches": "5", "schedule": "gpipe"}
    assert shown.settled["values"].items() >= sizes.items()
    assert shown.text("run").startswith("Below: your run in JAX.")
    assert [row[2] for row in shown.rows("tables")[:2]] == ["14000 ms", "28.6\u00a0%"]
    other = json.dumps(a_record("1f1b")).replace('"1f1b"', '"gpipe"')
    shown = Shown("pipeline", beside="own", changed="record", record=other)
    assert "The order of passes is not the plan’s on device 0, 1, 2." in shown.text("run")
    lacks = a_record("gpipe")
    lacks["split"]["events"].pop()
    wrong = record.replace('"pipeline"', '"tensor"')
    hostile = record.replace('"begin": 0.0', '"begin": "<img src=x>"')
    for content in ("{", "3", json.dumps(lacks), wrong, hostile, record.replace("0.0,", "NaN,")):
        shown = Shown("pipeline", beside="own", changed="record", record=content)
        line = "This file is no record of one pipeline, or lacks passes of it."
        assert (shown.text("refused"), shown.text("run")) == (line, "")


@pytest.mark.parametrize("k", [2, 7, 16])
def test_sums_and_messages_of_every_round_are_those_of_another_walk(k: int) -> None:
    for algorithm, make in SCHEDULES.items():
        schedule = make(k)
        rounds = zip(walked.sums(schedule), ((), *schedule.rounds), strict=True)
        for number, (held, messages) in enumerate(rounds):
            shown = Shown("rounds", algorithm=algorithm, devices=k, round=number)
            assert shown.text() == words(schedule, number)
            groups = [each.get("class") for each in shown.tree.iter("g")]
            assert groups.count("pic-arrow") == len(messages)
            boxes = [each for each in shown.tree.iter("g") if each.get("class") == "pic-box"]
            for box, mask in zip(boxes, held.ravel().tolist(), strict=True):
                spelled = "+".join(str(d) for d in range(k) if mask & 2**d)
                known = {str(mask.bit_count()), "sum" if mask == 2**k - 1 else spelled}
                assert "".join(box.itertext()) in known


def test_without_pyodide_a_page_has_first_pictures_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FIGURES:
        alone, live = explorer(name), explorer(name, "assets")
        assert answer(name, "{}") in alone
        assert answer(name, "{}") in live
        assert not re.search("<(input|select|button|script)", alone)
    monkeypatch.setattr(runtime, "PACKAGE", tmp_path / "folder" / "pyodide.tgz")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runtime.fetch() == "there is no npm"
    npm = tmp_path / "npm"
    for ends, reason in (
        ("exit 1", "npm cannot be reached"),
        (f"echo > {runtime.PACKAGE}", "the package has another digest than the pinned one"),
    ):
        npm.write_text(f"#!/bin/sh\n{ends}\n")
        npm.chmod(0o755)
        assert runtime.fetch() == reason
        assert not runtime.PACKAGE.exists()
