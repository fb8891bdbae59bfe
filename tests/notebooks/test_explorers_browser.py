"""The explorers in a real browser: they react, fit, and complain of nothing."""

import re
from collections.abc import Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from browser_tabs import NEEDED, ON_BOTH, fits
from explorer_page import ASSETS, each_of, page_of, press, said, spilled, values_of, written
from playwright.sync_api import Browser, Page as Tab

from common.chapters.strategies import STRATEGIES
from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures
from notebooks.drawing.explore_plans import EXPLORERS

pytestmark = NEEDED

EVERY = pytest.mark.parametrize("figure", EXPLORERS)

STEPPED = {"pipeline": "step", "shards": "moment", "rounds": "round"}
"""The explorers that have steps, and the names of their sliders."""

CHANGES = {
    "pipeline": {"stages": "5", "microbatches": "10", "schedule": "interleaved"},
    "memory": {"strategy": "zero2", "devices": "7"},
    "shards": {"strategy": "pipeline", "microbatches": "3", "devices": "3"},
    "rounds": {"algorithm": "halving", "devices": "7"},
}
"""What a reader may choose."""


def largest(figure: str) -> Iterator[dict[str, Any]]:
    """Settings with the most devices, and the longest numbers."""
    if figure == "pipeline":
        for stages, m in ((1, 1), (4, 8), (16, 64)):
            yield {"stages": stages, "microbatches": m, "beside": "nothing"}
        yield {"stages": 4, "microbatches": 8, "schedule": "gpipe", "beside": "jax"}
    elif figure == "memory":
        large = {"net": "dense", "millions": 10**6, "layers": 100, "optimizer": "adam"}
        for strategy, devices in product(STRATEGIES, (1, 64)):
            yield {**large, "strategy": strategy, "devices": devices, "microbatches": 8}
    elif figure == "shards":
        for strategy in STRATEGIES:
            yield {"strategy": strategy, "devices": 8, "depth": 4, "microbatches": 4}
    else:
        for algorithm, devices in product(SCHEDULES, (2, 11, 16)):
            yield {"algorithm": algorithm, "devices": devices}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {
        name: page_of(fragment, tmp_path_factory.mktemp(name))
        for name, fragment in EXPLORERS.items()
    }


@EVERY
def test_the_address_has_what_was_chosen(pages: dict[str, str], tab: Tab, figure: str) -> None:
    tab.goto(pages[figure])
    first = values_of(tab, figure)
    each_of(tab, figure, [CHANGES[figure]], "() => null")
    for name in ["first", "next"] if figure in STEPPED else []:
        press(tab, name)
    tab.wait_for_function("location.search")
    before, words = values_of(tab, figure), said(tab)
    assert before.items() >= CHANGES[figure].items()
    tab.reload()
    assert (values_of(tab, figure), said(tab)) == (before, words)
    tab.goto(f"{pages[figure]}?" + "&".join(f"{figure}.{name}=x" for name in first))
    names = first.keys() - STEPPED.values()
    assert [values_of(tab, figure)[name] for name in names] == [first[name] for name in names]


@pytest.mark.parametrize(("figure", "count"), [("pipeline", 6), ("memory", 8), ("shards", 9)])
def test_links_of_the_page_lead_to_what_they_say(
    pages: dict[str, str], tab: Tab, figure: str, count: int
) -> None:
    text = (ASSETS.parent / "explorer.md").read_text(encoding="utf-8")
    links = re.findall(rf'href="(\?{figure}\.[^"#]*)', text)
    assert len(links) == count
    for link in map(unescape, links):
        tab.goto(pages[figure] + link)
        asked = parse_qsl(urlsplit(link).query, strict_parsing=True)
        values = values_of(tab, figure)
        assert {key: values[key.removeprefix(f"{figure}.")] for key, _ in asked} == dict(asked)
        assert not said(tab).startswith("There is no such plan")


@pytest.mark.parametrize("figure", STEPPED)
def test_buttons_and_keys_step(pages: dict[str, str], tab: Tab, figure: str) -> None:
    tab.goto(pages[figure])
    slider = tab.locator(f"[name={STEPPED[figure]}]")
    press(tab, "last")
    last = slider.input_value()
    steps = {"first": "0", "back": "0", "next": "1", "last": last}
    for name, expected in steps.items():
        press(tab, name)
        assert slider.input_value() == expected
    assert tab.locator("button[name=next]").get_attribute("aria-disabled") == "true"
    end = said(tab)
    for focus, key, expected in (
        (".explorer-stage >> nth=0", "Home", "0"),
        (".explorer-stage >> nth=0", "ArrowRight", "1"),
        (f"[name={STEPPED[figure]}]", "ArrowRight", "2"),
        ("button[name=back]", "Enter", "1"),
        ("button[name=back]", "ArrowLeft", "0"),
        (".explorer-stage >> nth=0", "End", last),
        (".explorer-stage >> nth=0", "ArrowRight", last),
    ):
        tab.locator(focus).focus()
        tab.keyboard.press(key)
        assert slider.input_value() == expected, (focus, key)
    assert said(tab) == end


@pytest.mark.parametrize("figure", ["pipeline", "rounds"])
def test_it_plays_to_the_end_if_the_reader_wants_motion(
    pages: dict[str, str], tab: Tab, figure: str
) -> None:
    tab.clock.install(time=0)
    tab.goto(pages[figure])
    tab.clock.pause_at(60)  # else time would pass between two lines of the test, too
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
def test_nothing_is_wider_than_the_window(pages: dict[str, str], tab: Tab, figure: str) -> None:
    tab.goto(pages[figure])
    for values in largest(figure):
        each_of(tab, figure, [values], "() => null")
        for name in ["next", "last"] if figure in STEPPED else []:
            press(tab, name)
        assert fits(tab), values
        stages = tab.locator(".explorer-stage").first
        assert stages.evaluate("each => each.scrollWidth <= each.clientWidth"), values
        if values.get("stages") != 16:
            assert spilled(tab) == [], values


@EVERY
def test_without_scripts_a_picture_stands_there(
    pages: dict[str, str], browser: Browser, figure: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(pages[figure])
    assert opened.locator(".explorer-still svg[role=img]").is_visible()
    assert opened.locator("select").first.is_hidden()
    context.close()


def test_words_say_what_a_pass_waits_for(pages: dict[str, str], tab: Tab) -> None:
    tab.goto(f"{pages['pipeline']}?pipeline.step=0&pipeline.microbatches=4&pipeline.stages=3")
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
    live = tab.locator(".explorer-devices td:nth-child(2)").all_inner_texts()
    assert live == ["3", "1", "0"]


@ON_BOTH
def test_no_text_of_a_picture_leaves_its_place(tab: Tab, tmp_path: Path) -> None:
    drawn = [pictures.three_splits(), *(pictures.data_parallelism(k) for k in (2, 4))]
    drawn += [pictures.allreduce(name, k) for name in SCHEDULES for k in (3, 5, 8)]
    for picture in drawn:
        tab.goto(written(tmp_path, picture))
        assert tab.locator("svg text").count() > 5
        assert fits(tab)
        assert spilled(tab) == []
