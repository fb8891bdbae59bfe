"""The explorer of pipelines in a real browser: its numbers are those of Python."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from browser_tabs import NEEDED, ON_BOTH, SIZES, fits
from playwright.sync_api import Browser, Page as Tab
from stepper_page import ASSETS, press, said, spilled, written

from common.backends.frameworks import FRAMEWORKS
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
from notebooks.drawing import explore_pipeline

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
