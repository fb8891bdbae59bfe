"""Runs beside a plan in the explorer of pipelines: those of the page, and a reader's own record."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import NEEDED
from playwright.sync_api import Page as Tab
from stepper_page import ASSETS, written

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from common.parallel.pipelines import ORDERS, simulate
from common.records.record import Record, Split
from common.settings.config import Config
from notebooks.drawing import explore_pipeline, pipeline_runs

pytestmark = NEEDED


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with the explorer in it, on the disk."""
    path = written(tmp_path_factory.mktemp("page"), explore_pipeline.fragment(ASSETS.as_uri()))
    return path.as_uri()


@pytest.mark.parametrize("schedule", ORDERS)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_kept_runs_are_whole_and_in_the_order_of_the_plan(name: str, schedule: str) -> None:
    runs = json.loads(pipeline_runs.RUNS.read_text(encoding="utf-8"))
    (run,) = (r for r in runs if (r["framework"], r["schedule"]) == (name, schedule))
    assert (run["stages"], run["microbatches"]) == (4, 8)
    done = [
        [[device, i, bool(forward)] for device, forward, i, *_ in run["events"] if device == each]
        for each in range(4)
    ]
    assert done == [[list(one) for one in passes] for passes in ORDERS[schedule](4, 8)]
    times = [time for event in run["events"] for time in event[3:]]
    assert times == sorted(times)


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
    tab.locator("[name=times]").select_option("order")
    sums = tab.locator(".explorer-sums tbody tr").all_inner_texts()
    assert sums[:2] == ["whole time\t33 units\t33 units", "bubble\t27.3\u00a0%\t27.3\u00a0%"]
    tab.locator("[name=stages]").fill("3")
    assert tab.locator(".explorer-run").is_hidden()
    refused = tab.locator(".explorer-refused").inner_text()
    assert "These runs have 4 devices and 8 microbatches, in the orders naive" in refused


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
    assert {"framework", "chapter", "config", "split"} <= Record.model_fields.keys()
    assert "events" in Split.model_fields
    return {
        "framework": "jax",
        "chapter": "strategies",
        "config": {"devices": devices, "device_kind": "cpu", "options": asdict(options)},
        "split": {"events": [asdict(each) for each in events]},
    }


def choose(tab: Tab, folder: Path, content: str) -> str:
    """Chooses a file with this content as a record, and returns what the page says of it."""
    path = folder / "record.json"
    path.write_text(content, encoding="utf-8")
    opened = tab.locator(".explorer-opened")
    opened.evaluate("each => { each.textContent = ''; }")
    tab.locator("input[type=file]").set_input_files(path)
    tab.wait_for_function("document.querySelector('.explorer-opened').textContent")
    return opened.inner_text()


def test_a_reader_s_own_record_sets_the_plan(page: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(page)
    assert choose(tab, tmp_path, json.dumps(a_record())) == "The record is drawn below the plan."
    for name, value in (("stages", "3"), ("microbatches", "5"), ("schedule", "gpipe")):
        assert tab.locator(f"[name={name}]").input_value() == value
    assert tab.locator(".explorer-run .pic-pass").count() == 2 * 3 * 5
    assert "Below: your run in JAX." in tab.locator(".explorer-about").inner_text()
    listed = tab.locator(".explorer-differences").inner_text()
    assert "exactly the plan’s" in listed
    assert "overlap" not in listed
    sums = tab.locator(".explorer-sums td:last-child").all_inner_texts()
    assert sums[:2] == ["14000 ms", "28.6\u00a0%"]


def test_few_examples_make_fewer_microbatches(page: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(page)
    record = a_record(microbatches=3)
    record["config"]["options"]["microbatches"] = 8
    assert choose(tab, tmp_path, json.dumps(record)) == "The record is drawn below the plan."
    assert tab.locator("[name=microbatches]").input_value() == "3"


def test_another_order_than_the_plan_s_is_seen(page: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(page)
    other = a_record("1f1b")
    other["config"]["options"]["schedule"] = "gpipe"
    choose(tab, tmp_path, json.dumps(other))
    listed = tab.locator(".explorer-differences").inner_text()
    assert "The order of passes is not the plan’s on device 0, 1, 2." in listed


def spoilt(**changes: Any) -> str:
    """A record of which one event is changed."""
    record = a_record()
    record["split"]["events"][4] |= changes
    return json.dumps(record)


def in_no_time() -> dict[str, Any]:
    """A record whose passes last next to nothing."""
    record = a_record()
    for event in record["split"]["events"]:
        event |= {name: 1e-310 * event[name] for name in ("begin", "end")}
    return record


def without_the_last() -> dict[str, Any]:
    """A record that lacks its last pass."""
    record = a_record()
    record["split"]["events"].pop()
    return record


FIRST = a_record()["split"]["events"][0]

WRONG = {
    "no JSON": ("{", "This file is not JSON."),
    "a number": ("3", "no record of a run that splits"),
    "nothing": ("null", "no record of a run that splits"),
    "another chapter": (json.dumps(a_record() | {"chapter": "lenet"}), "no record of a run that"),
    "no events": (json.dumps(a_record() | {"split": None}), "does not tell when each pass began"),
    "another strategy": (
        json.dumps(a_record()).replace('"pipeline"', '"tensor"'),
        "This run is no pipeline",
    ),
    "replicas": (json.dumps(a_record()).replace('"replicas": 1', '"replicas": 2'), "several"),
    "a schedule": (json.dumps(a_record()).replace('"gpipe"', '"constructor"'), "can be drawn here"),
    "an order of no run": (
        json.dumps(a_record()).replace('"gpipe"', '"interleaved"'),
        "drawn here",
    ),
    "a list": (json.dumps(a_record()).replace('"gpipe"', '["gpipe"]'), "can be drawn here"),
    "overlapping": (spoilt(end=100), "before one that it has to wait for"),
    "in no time": (json.dumps(in_no_time()), "no pass takes time"),
    "devices": (json.dumps(a_record()).replace('"devices": 3', '"devices": 1e9'), "drawn here"),
    "a text": (spoilt(begin="<img src=x onerror=alert(1)>"), "a pass that cannot be"),
    "what": (spoilt(what="<img src=x onerror=alert(1)>"), "a pass that cannot be"),
    "endless": (spoilt(end="Infinity").replace('"Infinity"', "1e999"), "a pass that cannot be"),
    "backwards": (spoilt(end=0), "a pass that cannot be"),
    "a device": (spoilt(device=3), "a pass that cannot be"),
    "an array": (spoilt(device=[0]), "a pass that cannot be"),
    "twice": (
        json.dumps(a_record()).replace('"events": [', f'"events": [{json.dumps(FIRST)}, '),
        "before one that it has to wait for",
    ),
    "missing": (json.dumps(without_the_last()), "missing, or are there twice"),
    "too early": (spoilt(device=2, microbatch=4, what="backward"), "it has to wait for"),
    "too many": (
        json.dumps(a_record() | {"split": {"events": [0] * 100_001}}),
        "too many passes to draw",
    ),
    "too large": (" " * 20_000_001, "too large for a record"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_or_hostile_file_gets_one_line(
    page: str, tab: Tab, tmp_path: Path, kind: str
) -> None:
    tab.goto(page)
    before = tab.locator(".explorer-stage").first.inner_html()
    content, line = WRONG[kind]
    answer = choose(tab, tmp_path, content)
    assert line in answer
    assert "\n" not in answer
    assert tab.locator("#pipeline img").count() == 0
    assert tab.locator(".explorer-stage").first.inner_html() == before
    assert tab.locator(".explorer-run").is_hidden()


def test_names_in_a_record_are_not_shown(page: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(page)
    choose(tab, tmp_path, json.dumps(a_record() | {"framework": "<b>__proto__</b>\u202e"}))
    assert tab.locator(".explorer-about").inner_text() == "Below: your run."


def test_a_record_of_something_else_is_no_run_to_keep() -> None:
    record: Any = Record.model_construct(
        framework="jax",
        chapter="strategies",
        split=None,
        config=Config.model_construct(devices=2, options=StrategiesOptions("tensor")),
    )
    with pytest.raises(RunError, match="does not tell the passes"):
        pipeline_runs.kept(record)
