"""The explorer of pipelines in a real browser: its numbers are those of Python."""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import NEEDED, ON_BOTH, SIZES, fits
from playwright.sync_api import Browser, Page as Tab
from stepper_page import ASSETS, press, said, spilled, written

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from common.parallel.pipelines import (
    CHUNKS,
    ORDERS,
    Event as Planned,
    Order,
    bubble,
    interleaved,
    most_live,
    simulate,
)
from common.records.record import Record, Split
from common.settings.config import Config
from notebooks.drawing import explore_pipeline, pipeline_runs

pytestmark = NEEDED

MADE = {**ORDERS, "interleaved": interleaved}

SET = """all => all.map(values => {
    const find = selector => document.querySelector(`#pipeline ${selector}`);
    const cells = (selector) => [...document.querySelectorAll(`#pipeline ${selector} tbody tr`)]
        .map(row => [...row.querySelectorAll('td')].map(each => each.textContent));
    for (const [name, value] of Object.entries(values)) find(`[name=${name}]`).value = value;
    find('[name=stages]').dispatchEvent(new Event('input', { bubbles: true }));
    return { words: find('[aria-live]').textContent, hidden: find('.explorer-shown').hidden,
        boxes: document.querySelectorAll('#pipeline .pic-pass').length,
        sums: cells('.explorer-sums'), devices: cells('.explorer-devices') };
})"""
"""Sets controls to each of some settings, and reads what the page then says."""

SIMULATED = """all => all.map(({ stages, microbatches, schedule, forward, backward }) => {
    const chunks = schedule === 'interleaved' ? pipelines.CHUNKS : 1;
    const events = pipelines.simulate(pipelines.orders[schedule](stages, microbatches),
        one => (one.forward ? forward : backward) / chunks);
    return [pipelines.bubble(events, stages), events.map(each =>
        [each.device, each.stage, each.microbatch, each.forward, each.begin, each.end])];
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with the explorer in it, on the disk."""
    path = written(tmp_path_factory.mktemp("page"), explore_pipeline.fragment(ASSETS.as_uri()))
    return path.as_uri()


def drawn_settings(count: int) -> list[dict[str, Any]]:
    """Random settings, each schedule as often; the largest are among them."""
    chance = random.Random(8)
    found = []
    for number in range(count):
        schedule = list(MADE)[number % len(MADE)]
        devices = 16 if number < len(MADE) else chance.randint(1, 16)
        microbatches = 64 if number < len(MADE) else chance.randint(1, 64)
        if schedule == "interleaved" and number % 3:
            microbatches = max(1, microbatches // devices) * devices
        times = {name: chance.randint(1, 16) / 2 for name in ("forward", "backward")}
        found.append(
            {"stages": devices, "microbatches": microbatches, "schedule": schedule, **times}
        )
    return found


def planned(values: Mapping[str, Any]) -> tuple[Order, list[Planned]]:
    """What Python plans."""
    order = MADE[values["schedule"]](values["stages"], values["microbatches"])
    chunks = CHUNKS if values["schedule"] == "interleaved" else 1
    return order, simulate(
        order, lambda one: values["forward" if one.forward else "backward"] / chunks
    )


def test_its_numbers_are_those_of_python(page: str, tab: Tab) -> None:
    tab.goto(page)
    settings = drawn_settings(200)
    impossible = 0
    for values, shown in zip(settings, tab.evaluate(SET, settings), strict=True):
        if values["schedule"] == "interleaved" and values["microbatches"] % values["stages"]:
            impossible += 1
            assert shown["hidden"]
            assert "is no multiple of" in shown["words"]
            continue
        order, events = planned(values)
        assert not shown["hidden"]
        assert shown["boxes"] == len(events)
        (whole,), (waits,), (theory,) = shown["sums"]
        assert float(whole.removesuffix(" units")) == max(event.end for event in events)
        share = 100 * bubble(events, values["stages"])
        assert abs(float(waits.removesuffix("\u00a0%")) - share) <= 0.05 + 1e-9  # as printed
        assert theory == waits
        chunks = CHUNKS if values["schedule"] == "interleaved" else 1
        for passes, (now, most, of_all) in zip(order, shown["devices"], strict=True):
            assert (now, most) == ("0", str(most_live(passes)))
            part = 100 * most_live(passes) / (chunks * values["microbatches"])
            assert abs(float(of_all.removesuffix("\u00a0%")) - part) <= 0.05 + 1e-9
    assert 10 < impossible < 50


def test_each_pass_begins_and_ends_as_in_python(page: str, tab: Tab) -> None:
    tab.goto(page)
    settings = [
        each
        for each in drawn_settings(48)
        if each["schedule"] != "interleaved" or each["microbatches"] % each["stages"] == 0
    ]
    for values, (waits, passes) in zip(settings, tab.evaluate(SIMULATED, settings), strict=True):
        _, events = planned(values)
        assert waits == bubble(events, values["stages"])
        assert passes == [
            [event.done.stage % values["stages"], *event.done, event.begin, event.end]
            for event in events
        ]


def test_words_say_what_a_pass_waits_for(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?pipeline.step=0&pipeline.microbatches=4&pipeline.stages=3")
    assert said(tab) == "Start: no microbatch has been passed yet."
    tab.locator("#pipeline .pic-pass").nth(1).hover()
    told = (
        "Device 0 passes microbatch 1 forward, from 1 to 2. It needs: its own device is free at 1."
    )
    assert tab.locator(".explorer-told").inner_text() == told
    tab.locator("#pipeline .pic-pass").nth(7).click()
    assert said(tab) == (
        "Step 8 of 24: Device 1 passes microbatch 0 backward, from 5 to 7. It needs: microbatch 0 "
        "forward on device 1, done at 2; microbatch 0 backward on device 2, done at 5; its own "
        "device is free at 3, so it has waited 2. Then it has 1 microbatch live."
    )
    assert tab.locator(".pic-pass.later").count() == 24 - 8
    live = tab.locator(".explorer-devices td:nth-child(2)").all_inner_texts()
    assert live == ["3", "1", "0"]


def test_what_is_chosen_stands_in_the_address(page: str, tab: Tab) -> None:
    tab.goto(page)
    for name, value in (("stages", "5"), ("microbatches", "10"), ("forward", "2.5")):
        tab.locator(f"[name={name}]").fill(value)
    tab.locator("[name=schedule]").select_option("interleaved")
    press(tab, "back")
    tab.wait_for_function("location.search.includes('pipeline.step=199')")
    before, picture = said(tab), tab.locator(".explorer-stage svg").first.inner_html()
    assert before.startswith("Step 199 of 200")
    tab.reload()
    assert said(tab) == before
    assert tab.locator(".explorer-stage svg").first.inner_html() == picture
    press(tab, "next")
    tab.wait_for_function("!location.search.includes('step')")


@pytest.mark.parametrize(
    ("asked", "stages", "begin"),
    [
        ("pipeline.stages=-3&pipeline.step=-1", "1", "Start"),
        ("pipeline.stages=1e9&pipeline.step=1e9", "16", "Step 256 of 256"),
        ("pipeline.stages=2.4&pipeline.forward=NaN&pipeline.schedule=__proto__", "2", "Step 32"),
        ("pipeline.stages=%3Cb%3E&pipeline.beside=constructor&pipeline.times=", "4", "Step 64 of"),
        ("pipeline.beside=own", "4", "Step 64 of 64"),
    ],
)
def test_nonsense_in_the_address_does_nothing(
    page: str, tab: Tab, asked: str, stages: str, begin: str
) -> None:
    tab.goto(f"{page}?{asked}")
    assert tab.locator("[name=stages]").input_value() == stages
    assert tab.locator("[name=forward]").input_value() == "1"
    assert said(tab).startswith(begin)
    assert tab.locator(".explorer-run").is_hidden()


def test_every_control_works_by_keys(page: str, tab: Tab) -> None:
    tab.goto(page)
    for focus, key, begin in (
        ("[name=step]", "Home", "Start"),
        ("[name=step]", "ArrowRight", "Step 1 of 64"),
        (".explorer-stage >> nth=0", "ArrowRight", "Step 2 of 64"),
        (".explorer-stage >> nth=0", "ArrowLeft", "Step 1 of 64"),
        (".explorer-stage >> nth=0", "End", "Step 64 of 64"),
        (".explorer-stage >> nth=0", "ArrowRight", "Step 64 of 64"),
        ("button[name=back]", "Enter", "Step 63 of 64"),
        ("button[name=first]", "Enter", "Start"),
        ("button[name=next]", "Space", "Step 1 of 64"),
        ("button[name=last]", "Enter", "Step 64 of 64"),
        ("[name=stages]", "ArrowUp", "Step 80 of 80"),
        ("[name=microbatches]", "ArrowDown", "Step 70 of 70"),
        ("[name=forward]", "ArrowUp", "Step 70 of 70: Device 0 passes microbatch 6 backward, from"),
        ("[name=schedule]", "Home", "Step 70 of 70"),
    ):
        tab.locator(focus).focus()
        tab.keyboard.press(key)
        assert said(tab).startswith(begin), (focus, key)
    assert tab.locator("[name=forward]").input_value() == "1.5"
    assert tab.locator("[name=schedule]").input_value() == "naive"
    tab.locator("[name=beside]").focus()
    tab.keyboard.press("P")
    assert tab.locator("[name=beside]").input_value() == "pytorch"
    reached = set()
    tab.locator("[name=stages]").focus()
    for _ in range(20):
        reached.add(tab.evaluate("document.activeElement.name || document.activeElement.type"))
        tab.keyboard.press("Tab")
    names = {"stages", "microbatches", "schedule", "forward", "backward", "width", "beside"}
    assert reached >= names | {"times", "step", "first", "back", "next", "last", "play", "file"}


def test_it_plays_to_the_end(page: str, tab: Tab) -> None:
    tab.clock.install(time=0)
    tab.goto(f"{page}?pipeline.stages=2&pipeline.microbatches=2")
    tab.clock.pause_at(60)
    press(tab, "play")
    assert said(tab).startswith("Start")
    tab.clock.run_for(1700)
    assert said(tab).startswith("Step 3 of 8")
    tab.clock.run_for(20_000)
    assert said(tab).startswith("Step 8 of 8")
    assert tab.locator("[name=play]").inner_text() == "play"


def test_nothing_moves_by_itself_for_who_wants_no_motion(page: str, tab: Tab) -> None:
    tab.emulate_media(reduced_motion="reduce")
    tab.goto(page)
    assert tab.locator("[name=play]").is_hidden()


@ON_BOTH
def test_it_fits(page: str, tab: Tab) -> None:
    tab.goto(page)
    every = [
        {"stages": devices, "microbatches": microbatches, "schedule": schedule, "width": width}
        for devices, microbatches in ((1, 1), (4, 8), (16, 64))
        for schedule in MADE
        for width in ("all", "numbers")
    ]
    for values in every:
        tab.evaluate(SET, [{**values, "beside": "nothing"}])
        assert fits(tab), values
        if values["width"] == "all":
            scrolls = "each => each.scrollWidth - each.clientWidth"
            assert tab.locator(".explorer-stage").first.evaluate(scrolls) <= 0
        if (values["stages"], values["width"]) == (4, "all"):
            assert spilled(tab) == []
    for framework in FRAMEWORKS:
        tab.goto(f"{page}?pipeline.beside={framework}&pipeline.times=alone")
        assert tab.locator(".explorer-run").is_visible()
        assert fits(tab)


def test_colours_follow_the_reader(page: str, tab: Tab) -> None:
    tab.goto(page)
    card = tab.locator(".explorer-live")
    found = set()
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        found.add(card.evaluate("each => getComputedStyle(each).backgroundColor"))
    assert found == {"rgb(255, 255, 255)", "rgb(28, 33, 40)"}


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


def test_without_scripts_the_orders_stand_there(page: str, browser: Browser) -> None:
    phone = SIZES["phone"]
    context = browser.new_context(
        java_script_enabled=False, viewport={"width": phone[0], "height": phone[1]}
    )
    opened = context.new_page()
    opened.goto(page)
    assert opened.locator(".explorer-still svg[role=img]").is_visible()
    row = opened.locator(".explorer-still tr", has_text="4 devices, interleaved 1F1B").nth(1)
    assert row.locator("td").all_inner_texts() == ["8", "16%", "11, 9, 7, 5"]
    assert opened.locator("button").first.is_hidden()
    assert fits(opened)
    context.close()


def test_a_record_of_something_else_is_no_run_to_keep() -> None:
    record: Any = Record.model_construct(
        framework="jax",
        chapter="strategies",
        split=None,
        config=Config.model_construct(devices=2, options=StrategiesOptions("tensor")),
    )
    with pytest.raises(RunError, match="does not tell the passes"):
        pipeline_runs.kept(record)
