"""The figures that a reader changes have the numbers of plans, in words and in tables."""

import re
from dataclasses import replace
from html import unescape
from itertools import chain, product
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from explorer_shown import Shown, a_record

from common.parallel.schedules import SCHEDULES, execute
from common.parallel.strategies import OF_ANY_NET
from notebooks.drawing.steps import EXAMPLE
from notebooks.drawing.storyboard import words
from notebooks.explorers.figures import FIGURES, answer, explorer
from notebooks.explorers.forms import values
from notebooks.explorers.pipeline import REFUSAL
from notebooks.web import runtime

PAGE = (Path(__file__).parents[2] / "docs/explorer.md").read_text(encoding="utf-8")


def test_links_of_the_page_lead_to_what_they_choose() -> None:
    links = re.findall(r'href="\?((\w+)\.[^"#]*)', PAGE)
    assert len(links) == 11
    for link, figure in links:
        pairs = parse_qsl(unescape(link), strict_parsing=True)
        choice = {key.removeprefix(f"{figure}."): value for key, value in pairs}
        shown = Shown(figure, **choice)
        assert shown.settled["values"].items() >= choice.items()
        assert not shown.text().startswith("There is no such plan")


@pytest.mark.parametrize("figure", FIGURES)
def test_what_is_no_value_is_as_at_first(figure: str) -> None:
    first = Shown(figure).settled
    controls = [control for row in FIGURES[figure].FORM for control in row]
    for wrong in ("x", "nan", "inf", "<img src=x>"):
        assert Shown(figure, **{control.name: wrong for control in controls}).settled == first
    large = values(FIGURES[figure].FORM, {control.name: "1e9" for control in controls})
    for control in controls:
        if isinstance(control.options, range):
            assert large[control.name] == control.options[-1]


def test_memory_says_what_fits_and_what_is_sent() -> None:
    assert Shown("memory", strategy="data").text() == (
        "Device 0, the fullest, fills 141\u00a0% of 80\u00a0GB. "
        "What takes most there: optimizer, 84.0\u00a0GB."
    )
    lines = Shown("memory", devices=7).text("scrolled").splitlines()
    refused = {
        line.split()[1].rstrip(":"): line.split(": ")[1] for line in lines if line[:3] == "no "
    }
    for name in OF_ANY_NET:
        plan = replace(EXAMPLE, strategy=name, devices=7)
        assert refused.get(name, "") == plan.refusal()
        if name in refused:
            text = f"There is no such plan: {plan.refusal()}."
            assert Shown("memory", strategy=name, devices=7).text() == text
            continue
        row = next(line.split() for line in lines if line.startswith(f"{name} "))
        numbers = max(plan.kept()) / 1e9, sum(plan.usage().all_sent()) / 1e9, plan.seconds().step
        assert [float(cell) for cell in row[1:4]] == pytest.approx(numbers, abs=0.06)
    assert {"tensor", "data"} & refused.keys() == {"tensor"}


def test_what_the_page_says_of_traffic_is_so() -> None:
    few, data, many, same = (
        replace(EXAMPLE, strategy=name, examples=n).usage().all_sent()
        for n, name in product((8192, 16_384), ("tensor", "data"))
    )
    assert sum(few) < sum(data) == sum(same) < sum(many)
    assert f"one device sends {max(data) / 1e9:.0f} GB" in PAGE
    zero = {i: replace(EXAMPLE, strategy=f"zero{i}").usage().all_sent() for i in (1, 2, 3)}
    assert f"with ZeRO-1 it sends {max(zero[1]) / 1e9:.1f} GB" in PAGE
    assert sum(zero[3]) == sum(zero[2]) * 3 / 2


def test_a_pipeline_has_the_bubble_that_the_page_says() -> None:
    for schedule, end, waits, flights, boxes in (
        ("naive", 96, 75.0, "1, 1, 1, 1", 64),
        ("gpipe", 33, 27.3, "8, 8, 8, 8", 64),
        ("1f1b", 33, 27.3, "4, 3, 2, 1", 64),
        ("zb1", 27, 11.1, "4, 4, 4, 4", 96),
    ):
        shown = Shown("pipeline", schedule=schedule)
        words = f"The step takes {end} units of time. The bubble is {waits}\u00a0% of it."
        assert shown.text() == words
        assert f"Most microbatches in flight: {flights}." in shown.text("stage")
        assert [each.get("class") for each in shown.tree.iter()].count("pic-box") == boxes
    assert "a device waits 27.3 %" in PAGE
    assert "it waits 11.1 % instead of 27.3 %, and every device keeps 4." in PAGE
    for backward, units in ((1, 19), (3, 36.5)):
        shown = Shown("pipeline", schedule="zb1", backward=backward)
        assert shown.text().startswith(f"The step takes {units} units of time.")
    assert "8.6\u00a0%" in Shown("pipeline", microbatches=32).text()
    assert "with 32 it is 8.6 %" in PAGE


def test_a_readers_own_record_still_opens() -> None:
    chosen = {"devices": 3, "microbatches": 5, "schedule": "gpipe"}
    shown = Shown("pipeline", record=a_record(), opened="yes")
    assert shown.settled == Shown("pipeline", **chosen).settled
    assert shown.text().endswith("Below: your run. Its order of passes is the plan’s.")
    assert "14000 ms, 29% of it waiting. Most microbatches in" in shown.text("stage")
    assert [each.get("class") for each in shown.tree.iter()].count("pic-box") == 2 * 30
    shown = Shown("pipeline", record=a_record(), **{**chosen, "devices": 2})
    assert shown.text().endswith("Below: your run. Its order of passes is not the plan’s.")
    for old, new in (
        *(("{", ""), ("{", "[" * 10**4), ('"split": ', '"split": null, "native": ')),
        *(('"pipeline"', '"tensor"'), ('"replicas": 1', '"replicas": 2')),
        *(('"begin": 0.0', '"begin": NaN'), ('"begin": 0.0', '"begin": "<img src=x>"')),
        *(('"devices": 3', '"devices": 1e99'), ('"microbatch": 4', '"microbatch": 3')),
    ):
        shown = Shown("pipeline", record=a_record().replace(old, new), opened="yes")
        assert shown.text() == f"{Shown('pipeline').text()} {REFUSAL}"


@pytest.mark.parametrize("k", [2, 7, 16])
def test_sums_and_messages_of_every_round_are_those_of_the_schedule(k: int) -> None:
    for algorithm, make in SCHEDULES.items():
        schedule = make(k)
        for number, messages in enumerate(((), *schedule.rounds)):
            held = [[2**d] * schedule.chunks for d in range(k)]  # a sum shows its terms
            begun = replace(schedule, rounds=schedule.rounds[:number])
            execute(begun, held, lambda chunk, _: chunk)
            shown = Shown("rounds", algorithm=algorithm, devices=k, round=number)
            assert shown.text() == words(schedule, number)
            groups = [each.get("class") for each in shown.tree.iter("g")]
            assert groups.count("pic-arrow") == len(messages)
            boxes = [each for each in shown.tree.iter("g") if each.get("class") == "pic-box"]
            for box, mask in zip(boxes, chain(*held), strict=True):
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
    assert not runtime.fetch()  # there is no npm
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\necho > {runtime.PACKAGE}\n")
    npm.chmod(0o755)
    assert not runtime.fetch()  # it has another digest than the pinned one
    assert runtime.PACKAGE.exists()
