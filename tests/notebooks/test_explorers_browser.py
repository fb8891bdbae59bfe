"""The explorers in a real browser."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from browser_tabs import NEEDED, ON_BOTH, fits
from explorer_page import ASSETS, each_of, page_of, write_page
from playwright.sync_api import Browser, Page as Tab

from common.backends.frameworks import FRAMEWORKS
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from common.parallel.pipelines import IN_FLIGHT, order, simulate
from common.parallel.schedules import SCHEDULES
from common.records.record import Record, Split
from common.settings.config import Config
from notebooks.drawing import pictures
from notebooks.drawing.explorers import STILL, STRATEGIES
from notebooks.drawing.pipeline_runs import RUNS

pytestmark = NEEDED

EVERY = pytest.mark.parametrize("figure", STILL)

STEPPED = {"pipeline": "step", "shards": "moment", "rounds": "round"}
"""The explorers that have steps, and the names of their sliders."""

CHANGES = {
    "pipeline": {"stages": "5", "microbatches": "10", "schedule": "naive"},
    "memory": {"strategy": "zero2", "devices": "7"},
    "shards": {"strategy": "pipeline", "microbatches": "3", "devices": "3"},
    "rounds": {"algorithm": "halving", "devices": "7"},
}
"""What a reader may choose."""

LINKS = {"pipeline": 5, "memory": 8, "shards": 9, "rounds": 0}
"""How many links of the page lead to a plan."""

LARGE = {
    "net": "transformer",
    "millions": 10**6,
    "layers": 100,
    "optimizer": "adam",
    "microbatches": 8,
}

LARGEST: dict[str, list[dict[str, Any]]] = {
    "pipeline": [
        *({"stages": p, "microbatches": m, "beside": "nothing"} for p, m in ((1, 1), (16, 64))),
        {"stages": 4, "microbatches": 8, "schedule": "gpipe", "beside": "jax"},
    ],
    "memory": [{**LARGE, "strategy": s, "devices": k} for s, k in product(STRATEGIES, (1, 64))],
    "shards": [
        {"strategy": s, "devices": 8, "depth": 4, "microbatches": 4, "schedule": "1f1b"}
        for s in STRATEGIES
    ],
    "rounds": [{"algorithm": s, "devices": k} for s, k in product(SCHEDULES, (2, 11, 16))],
}
"""Settings with the most devices, and the longest numbers."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {name: page_of(name, tmp_path_factory.mktemp(name)) for name in STILL}


def links(figure: str) -> Iterator[str]:
    """The links of the page to plans of an explorer."""
    text = (ASSETS.parent / "explorer.md").read_text(encoding="utf-8")
    return map(unescape, re.findall(rf'href="(\?{figure}\.[^"#]*)', text))


def values_of(tab: Tab, figure: str) -> dict[str, str]:
    """The values of its controls."""
    found: dict[str, str] = tab.locator(f"#{figure}").evaluate("""root => Object.fromEntries(
        [...root.querySelectorAll('select, input')].map(each => [each.name, each.value]))""")
    return found


def press(tab: Tab, name: str) -> None:
    """Presses a button, which at the end only looks disabled."""
    tab.locator(f"button[name={name}]").click(force=True)


def said(tab: Tab) -> str:
    """The words of the figure."""
    return tab.locator("[aria-live]").inner_text()


def spilled(tab: Tab) -> list[str]:
    """Texts that leave their box or the picture, or touch another text."""
    found: list[str] = tab.evaluate("""() => {
        const found = [], within = (a, b) => a.left >= b.left && a.right <= b.right &&
            a.top >= b.top && a.bottom <= b.bottom;
        const place = each => each.getBoundingClientRect();
        for (const box of document.querySelectorAll('.pic-box'))
            for (const text of box.querySelectorAll('text'))
                if (!within(place(text), place(box.querySelector('rect'))))
                    found.push(text.textContent);
        const texts = [...document.querySelectorAll('svg text')].filter(each => place(each).width)
            .map(each => [each.textContent, place(each), place(each.closest('svg'))]);
        texts.forEach(([words, a, picture], i) => {
            if (!within(a, picture)) found.push(words);
            for (const [other, b] of texts.slice(i + 1))
                if (a.left < b.right && b.left < a.right && a.top + 3 < b.bottom - 3 &&
                    b.top + 3 < a.bottom - 3) found.push(`${words} / ${other}`);
        });
        return found;
    }""")
    return found


@EVERY
def test_the_address_has_what_was_chosen(pages: dict[str, str], tab: Tab, figure: str) -> None:
    tab.goto(pages[figure])
    first = values_of(tab, figure)
    each_of(tab, figure, [CHANGES[figure]], "() => null")
    for name in ["first", "next"] if figure in STEPPED else []:
        press(tab, name)
    wanted = f"{figure}.{STEPPED[figure]}=1" if figure in STEPPED else f"{figure}."
    tab.wait_for_function(f"location.search.includes('{wanted}')")
    before, words = values_of(tab, figure), said(tab)
    assert before.items() >= CHANGES[figure].items()
    tab.reload()
    assert (values_of(tab, figure), said(tab)) == (before, words)
    tab.goto(f"{pages[figure]}?" + "&".join(f"{figure}.{name}=x" for name in first))
    names = first.keys() - STEPPED.values()
    assert [values_of(tab, figure)[name] for name in names] == [first[name] for name in names]
    assert len(list(links(figure))) == LINKS[figure]
    for link in links(figure):
        tab.goto(pages[figure] + link)
        values = values_of(tab, figure)
        for key, asked in parse_qsl(urlsplit(link).query, strict_parsing=True):
            assert values[key.removeprefix(f"{figure}.")] == asked
        assert not said(tab).startswith("There is no such plan")


@pytest.mark.parametrize("figure", STEPPED)
def test_buttons_and_keys_step(pages: dict[str, str], tab: Tab, figure: str) -> None:
    tab.goto(pages[figure])
    slider = tab.locator(f"[name={STEPPED[figure]}]")
    press(tab, "last")
    last, end = slider.input_value(), said(tab)
    stage = ".explorer-stage >> nth=0"
    itself = f"[name={STEPPED[figure]}]"
    back = "[name=back]"
    for place, key, expected in (
        ("[name=first]", "Enter", "0"),
        (back, "Enter", "0"),
        ("[name=next]", "Enter", "1"),
        ("[name=last]", "Enter", last),
        (stage, "Home", "0"),
        (stage, "ArrowRight", "1"),
        (itself, "ArrowRight", "2"),
        (back, "Enter", "1"),
        (back, "ArrowLeft", "0"),
        (stage, "End", last),
        (stage, "ArrowRight", last),
    ):
        tab.locator(place).focus()
        tab.keyboard.press(key)
        assert slider.input_value() == expected, (place, key)
    assert said(tab) == end
    assert tab.locator("button[name=next]").get_attribute("aria-disabled") == "true"


@pytest.mark.parametrize("figure", ["pipeline", "rounds"])
def test_it_plays_to_the_end_if_the_reader_wants_motion(
    pages: dict[str, str], tab: Tab, figure: str
) -> None:
    tab.clock.install(time=0)
    tab.goto(pages[figure])
    tab.clock.pause_at(60)  # else time passes between two lines of the test
    slider, play = tab.locator(f"[name={STEPPED[figure]}]"), tab.locator("[name=play]")
    press(tab, "first")
    press(tab, "play")
    assert play.inner_text() == "pause"
    tab.clock.run_for(2500)
    assert 2 <= int(slider.input_value()) < int(slider.evaluate("each => each.max"))
    tab.clock.run_for(40_000)
    assert slider.input_value() == slider.evaluate("each => each.max")
    assert play.inner_text() == "play"
    tab.emulate_media(reduced_motion="reduce")
    tab.reload()
    assert play.is_hidden()


@ON_BOTH
@EVERY
def test_nothing_is_wider_than_the_window(
    pages: dict[str, str], tab: Tab, browser: Browser, base_url: str, figure: str
) -> None:
    tab.goto(pages[figure])
    for values in LARGEST[figure]:
        each_of(tab, figure, [values], "() => null")
        for name in ["next", "last"] if figure in STEPPED else []:
            press(tab, name)
        assert fits(tab), values
        stages = tab.locator(".explorer-stage").first
        assert stages.evaluate("each => each.scrollWidth <= each.clientWidth"), values
        if values.get("stages") != 16:
            assert spilled(tab) == [], values
    context = browser.new_context(base_url=base_url, java_script_enabled=False)
    opened = context.new_page()
    opened.goto(pages[figure])
    assert opened.locator(".explorer-still svg[role=img]").is_visible()
    assert opened.locator("select").first.is_hidden()
    context.close()


@ON_BOTH
def test_no_text_of_a_picture_leaves_its_place(tab: Tab, tmp_path: Path) -> None:
    drawn = [pictures.three_splits(), pictures.data_parallelism()]
    drawn += [pictures.allreduce(name, k) for name in SCHEDULES for k in (2, 3, 4)]
    for picture in drawn:
        tab.goto(write_page(tmp_path, picture))
        assert tab.locator("svg text").count() > 5
        assert fits(tab)
        assert spilled(tab) == []


def test_words_say_what_a_pass_waits_for(pages: dict[str, str], tab: Tab) -> None:
    tab.goto(f"{pages['pipeline']}?pipeline.step=0&pipeline.microbatches=4&pipeline.stages=3")
    assert said(tab) == "Start: no microbatch has been passed yet."
    tab.locator("#pipeline .pic-pass").nth(7).click()
    assert said(tab) == (
        "Step 8 of 24: Device 1 passes microbatch 0 backward, from 5 to 7. It needs: microbatch 0 "
        "forward on device 1, done at 2; microbatch 0 backward on device 2, done at 5; its "
        "device is free at 3, so it has waited 2. Then it has 1 microbatch in flight."
    )
    live = tab.locator(".explorer-devices td:nth-child(2)").all_inner_texts()
    assert live == ["3", "1", "0"]


def test_a_kept_run_stands_beside_its_plan_alone(pages: dict[str, str], tab: Tab) -> None:
    runs = json.loads(RUNS.read_text(encoding="utf-8"))
    assert [(r["framework"], r["schedule"]) for r in runs] == list(product(FRAMEWORKS, IN_FLIGHT))
    for run in runs:
        done: list[list[Any]] = [[] for _ in range(4)]
        for device, forward, microbatch, *_ in run["events"]:
            done[device].append((device, microbatch, bool(forward)))
        assert done == [[tuple(one) for one in each] for each in order(run["schedule"], 4, 8)]
    tab.goto(pages["pipeline"])
    tab.locator("[name=stages]").fill("5")
    tab.locator("[name=beside]").select_option("tensorflow")
    assert tab.locator("[name=stages]").input_value() == "4"
    listed = tab.locator(".explorer-differences").inner_text()
    assert "Each device’s order of passes is exactly the plan’s." in listed
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


def a_record(schedule: str) -> dict[str, Any]:
    """What the page reads of a record of a run whose passes last a second each."""
    options = StrategiesOptions("pipeline", microbatches=5, schedule=schedule)
    events = [
        Event(p.stage, "forward" if p.forward else "backward", p.microbatch, begin, end)
        for p, begin, end in (
            (each.done, each.begin, each.end) for each in simulate(order(schedule, 3, 5))
        )
    ]
    assert {"devices", "device_kind", "options"} <= Config.model_fields.keys()
    assert {"framework", "config", "split"} <= Record.model_fields.keys()
    assert "events" in Split.model_fields
    return {
        "framework": "jax",
        "config": {"devices": 3, "device_kind": "cpu", "options": asdict(options)},
        "split": {"events": [asdict(each) for each in events]},
    }


def choose(tab: Tab, content: str) -> str:
    """Chooses a file with this content; returns what the page says of it."""
    opened = tab.locator(".explorer-opened")
    opened.evaluate("each => { each.textContent = ''; }")
    file: Any = {"name": "1.json", "mimeType": "text/json", "buffer": content.encode()}
    tab.locator("input[type=file]").set_input_files([])
    tab.locator("input[type=file]").set_input_files(file)
    tab.wait_for_function("document.querySelector('.explorer-opened').textContent")
    return opened.inner_text()


def test_a_reader_s_own_record_sets_the_plan(pages: dict[str, str], tab: Tab) -> None:
    tab.goto(pages["pipeline"])
    record = json.dumps(a_record("gpipe"))
    assert choose(tab, record) == "The record is drawn below the plan."
    for name, value in (("stages", "3"), ("microbatches", "5"), ("schedule", "gpipe")):
        assert tab.locator(f"[name={name}]").input_value() == value
    assert tab.locator(".explorer-run .pic-pass").count() == 2 * 3 * 5
    assert "Below: your run in JAX." in tab.locator(".explorer-about").inner_text()
    sums = tab.locator(".explorer-sums td:last-child").all_inner_texts()
    assert sums[:2] == ["14000 ms", "28.6\u00a0%"]
    choose(tab, json.dumps(a_record("1f1b")).replace('"1f1b"', '"gpipe"'))
    listed = tab.locator(".explorer-differences").inner_text()
    assert "The order of passes is not the plan’s on device 0, 1, 2." in listed
    lacks = a_record("gpipe")
    lacks["split"]["events"].pop()
    wrong = record.replace('"pipeline"', '"tensor"')
    hostile = record.replace('"begin": 0', '"begin": "<img src=x>"')
    for content in ("{", "3", json.dumps(lacks), wrong, hostile):
        line = choose(tab, content)
        assert line == "This file is no record of one pipeline, or lacks passes of it."
        assert tab.locator(".explorer-run").is_hidden()
    assert tab.locator("#pipeline img").count() == 0
