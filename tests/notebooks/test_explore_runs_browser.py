"""Runs beside a plan in the explorer of pipelines: those of the page, and a reader's own record."""

import json
from dataclasses import asdict
from itertools import product
from typing import Any

import pytest
from browser_tabs import NEEDED
from explorer_page import page_of
from playwright.sync_api import Page as Tab

from common.backends.frameworks import FRAMEWORKS
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from common.parallel.pipelines import ORDERS, simulate
from common.records.record import Record, Split
from common.settings.config import Config
from notebooks.drawing import pipeline_runs
from notebooks.drawing.explore_plans import pipeline

pytestmark = NEEDED


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(pipeline, tmp_path_factory.mktemp("page"))


def test_kept_runs_are_whole_and_in_the_order_of_the_plan() -> None:
    runs = json.loads(pipeline_runs.RUNS.read_text(encoding="utf-8"))
    names = [(run["framework"], run["schedule"]) for run in runs]
    assert names == list(product(FRAMEWORKS, ORDERS))
    for run in runs:
        done: list[list[Any]] = [[] for _ in range(4)]
        for device, forward, microbatch, *_ in run["events"]:
            done[device].append((device, microbatch, bool(forward)))
        assert done == [[tuple(one) for one in each] for each in ORDERS[run["schedule"]](4, 8)]


def test_a_run_stands_beside_its_plan_alone(page: str, tab: Tab) -> None:
    tab.goto(page)
    tab.locator("[name=stages]").fill("5")
    tab.locator("[name=beside]").select_option("tensorflow")
    assert tab.locator("[name=stages]").input_value() == "4"
    listed = tab.locator(".explorer-differences").inner_text()
    assert "Each device’s order of passes is exactly the plan’s." in listed
    assert "no two passes overlap" in listed
    runs = json.loads(pipeline_runs.RUNS.read_text(encoding="utf-8"))
    (run,) = (r for r in runs if (r["framework"], r["schedule"]) == ("tensorflow", "1f1b"))
    end = max(event[4] for event in run["events"])
    busy = sum(event[4] - event[3] for event in run["events"])
    sums = tab.locator(".explorer-sums td:last-child").all_inner_texts()
    assert sums[0] == f"{end:.2f}".rstrip("0").rstrip(".") + " ms"
    assert abs(float(sums[1].removesuffix("\u00a0%")) - 100 * (1 - busy / 4 / end)) <= 0.05 + 1e-9
    tab.locator("[name=stages]").fill("3")
    assert tab.locator(".explorer-run").is_hidden()
    refused = tab.locator(".explorer-refused").inner_text()
    assert refused == "That run has 4 devices and 8 microbatches, in the order 1F1B: choose these."


def a_record(schedule: str = "gpipe", devices: int = 3, microbatches: int = 5) -> dict[str, Any]:
    """What the page reads of a record of a run whose passes last a second each."""
    options = StrategiesOptions("pipeline", microbatches=microbatches, schedule=schedule)
    events = [
        Event(p.stage, "forward" if p.forward else "backward", p.microbatch, begin, end)
        for p, begin, end in (
            (each.done, each.begin, each.end)
            for each in simulate(ORDERS[schedule](devices, microbatches))
        )
    ]
    assert {"devices", "device_kind", "options"} <= Config.model_fields.keys()
    assert {"framework", "config", "split"} <= Record.model_fields.keys()
    assert "events" in Split.model_fields
    return {
        "framework": "jax",
        "config": {"devices": devices, "device_kind": "cpu", "options": asdict(options)},
        "split": {"events": [asdict(each) for each in events]},
    }


def choose(tab: Tab, number: int, content: str) -> str:
    """Chooses a file with this content as a record, and returns what the page says of it."""
    opened = tab.locator(".explorer-opened")
    opened.evaluate("each => { each.textContent = ''; }")
    file: Any = {"name": f"{number}.json", "mimeType": "text/json", "buffer": content.encode()}
    tab.locator("input[type=file]").set_input_files(file)
    tab.wait_for_function("document.querySelector('.explorer-opened').textContent")
    return opened.inner_text()


def test_a_reader_s_own_record_sets_the_plan(page: str, tab: Tab) -> None:
    tab.goto(page)
    assert choose(tab, 0, json.dumps(a_record())) == "The record is drawn below the plan."
    for name, value in (("stages", "3"), ("microbatches", "5"), ("schedule", "gpipe")):
        assert tab.locator(f"[name={name}]").input_value() == value
    assert tab.locator(".explorer-run .pic-pass").count() == 2 * 3 * 5
    assert "Below: your run in JAX." in tab.locator(".explorer-about").inner_text()
    sums = tab.locator(".explorer-sums td:last-child").all_inner_texts()
    assert sums[:2] == ["14000 ms", "28.6\u00a0%"]
    other = a_record("1f1b")
    other["config"]["options"]["schedule"] = "gpipe"
    choose(tab, 1, json.dumps(other))
    listed = tab.locator(".explorer-differences").inner_text()
    assert "The order of passes is not the plan’s on device 0, 1, 2." in listed
    lacks = a_record()
    lacks["split"]["events"].pop()
    wrong = json.dumps(a_record()).replace('"pipeline"', '"tensor"')
    hostile = json.dumps(a_record()).replace('"begin": 0', '"begin": "<img src=x>"')
    for number, content in enumerate(("{", "3", json.dumps(lacks), wrong, hostile), start=2):
        said = choose(tab, number, content)
        assert said == "This file is no record of one pipeline, or lacks passes of it."
        assert tab.locator(".explorer-run").is_hidden()
    assert tab.locator("#pipeline img").count() == 0
