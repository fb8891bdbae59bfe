"""The figures that a reader changes have the numbers of plans, in words and in tables."""

import re
from collections.abc import Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import walked
from explorer_shown import Shown

from common.parallel.ledger import MOVED
from common.parallel.schedules import SCHEDULES
from common.plan import main
from common.scaling.cluster import with_prefix
from common.scaling.scenario import Scenario
from notebooks.drawing.frames import words
from notebooks.explorers.figures import FIGURES, answer, explorer
from notebooks.explorers.forms import quantity
from notebooks.explorers.shards import COLOURS, moments
from notebooks.web import runtime

LINKS = {"pipeline": 3, "memory": 8, "shards": 7}
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
    first = Shown(figure).settled
    controls = [control for row in FIGURES[figure].FORM for control in row]
    for wrong in ("x", "nan", "inf", "<img src=x>"):
        assert Shown(figure, **{control.name: wrong for control in controls}).settled == first
    numbers = [each for each in controls if isinstance(each.options, range) and not each.slides()]
    large = Shown(figure, **{control.name: "1e9" for control in numbers})
    for control in numbers:
        assert large.settled["values"][control.name] == str(control.options[-1])


def test_memory_says_what_fits_and_what_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert Shown("memory", card="rtx4090").text() == (
        "Every device fits a card of 24.0\u00a0GB: device 0, the fullest, fills 1\u00a0% of it. "
        "What takes most: activations, 1.30\u00a0MB of 2.85\u00a0MB on device 0. "
        "A step takes 91.6\u00a0µs: data 71.2\u00a0µs, compute 20.4\u00a0µs; messages of "
        "13.6\u00a0µs overlap. 2,793,465 examples a second use 11.2\u00a0% of the peak."
    )
    refused = Shown("memory", strategy="pipeline", devices=7)
    why = Scenario(strategy="pipeline", devices=7).refusal()
    assert refused.text() == f"There is no such plan: {why}."
    assert refused.block("stage").get("hidden") == ""
    # The explorer and the command agree.
    flags = ["--parameters=7e9", "--layers=32", "--devices=8", "--card=h100", "--link=nvlink4"]
    main(["--net=transformer", *flags])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[4:]]
    said = {name.strip("| "): figures for name, *figures in lines}
    choice = {"net": "transformer", "millions": 7000, "layers": 32, "devices": 8, "card": "h100"}
    choice |= {"precision": "mixed", "optimizer": "adam", "examples": 16_384, "link": "nvlink4"}
    shown = Shown("memory", **choice)
    assert shown.text().startswith("8 of 8 devices do not fit a card of 80.0\u00a0GB.")
    for name, most, _, messages, step, _ in shown.rows("scrolled"):
        fullest, *_, sent, seconds = said[name]
        assert (most, messages) == (quantity(int(fullest.replace(",", "")), "B"), sent)
        assert step == with_prefix(float(seconds.strip("| ")), "s").replace(" ", "\u00a0")


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


@pytest.mark.parametrize("strategy", ["data", "zero1", "zero2", "zero3"])
@pytest.mark.parametrize("devices", [1, 2, 5])
def test_moments_of_a_step_hold_at_most_and_send_what_a_plan_says(
    strategy: str, devices: int
) -> None:
    plan = Scenario(strategy, devices).plan()
    usage, shown = plan.usage(devices, 1), list(moments(plan))
    for kind in MOVED:
        total = sum(moment.sent for moment in shown if moment.moved == kind)
        assert total == sum(usage.sent[kind])
    slices = plan.sizes_of(plan.updated, 0)
    sizes = {
        layer: {"all": plan.size(layer), "slice": sum(map(slices.__getitem__, names))}
        for layer, names in plan.tensors.items()
    }
    for kind in COLOURS:
        held = [
            sum(sizes[layer][what] for layer in sizes for what, _ in moment.state[kind][layer])
            for moment in shown
            if not moment.words.startswith("Update")  # it writes new weights over old ones
        ]
        assert max(held) == usage.peak[kind][0]
    assert shown[0].state == shown[-1].state


def test_a_pipeline_says_what_a_pass_waits_for() -> None:
    shown = Shown("pipeline", stages=3, microbatches=4, step=8)
    assert shown.text() == (
        "Step 8 of 24: Device 1 passes microbatch 0 backward, from 5 to 7. It needs: microbatch 0 "
        "forward on device 1, done at 2; microbatch 0 backward on device 2, done at 5; its "
        "device is free at 3, so it has waited 2. In flight there: 1."
    )
    assert "Most microbatches in flight: 3, 2, 1." in shown.text("stage")
    assert [each.get("class") for each in shown.tree.iter()].count("pic-box") == 8
    bubbles = [("naive", "75.0\u00a0%"), ("gpipe", "27.3\u00a0%"), ("1f1b", "27.3\u00a0%")]
    for schedule, bubble in bubbles:
        rows = Shown("pipeline", schedule=schedule).rows("tables")
        assert [row[1] for row in rows[1:]] == [bubble, bubble]
    assert "a device waits 27.3 %" in PAGE.replace("\n", " ")
    assert Shown("pipeline", microbatches=32).rows("tables")[1][1] == "8.6\u00a0%"
    assert "with 32 it is 8.6 %" in PAGE


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
