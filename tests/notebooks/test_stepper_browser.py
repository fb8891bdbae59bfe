"""The stepper in a real browser: it reacts, fits, and complains of nothing.

Needs a Chromium on the path, or `CHROME_BIN` that names one.
"""

from pathlib import Path

import pytest
import walked
from chromium import NEEDED
from playwright.sync_api import Browser, Page as Tab
from stepper_page import ASSETS, arrows, cells, choose, fits, press, said, spilled, written

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import stepper, theme
from notebooks.drawing.frames import words

pytestmark = NEEDED


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the stepper in it, beside the files that a site would serve."""
    return written(tmp_path_factory.mktemp("page"), stepper.fragment(ASSETS.as_uri()))


def counted(algorithm: str, k: int) -> list[list[str]]:
    """How many devices each cell sums, after each round."""
    walk = walked.sums(SCHEDULES[algorithm](k))
    return [[str(mask.bit_count()) for mask in held.ravel().tolist()] for held in walk]


def test_buttons_step_through_every_round(page: Path, tab: Tab) -> None:
    tab.goto(page.as_uri())
    choose(tab, "ring", 7)
    schedule = SCHEDULES["ring"](7)
    for number, shown in enumerate(counted("ring", 7)):
        assert said(tab) == words(schedule, number)
        assert cells(tab) == shown
        assert tab.locator("input[type=range]").input_value() == str(number)
        press(tab, "next")
    assert said(tab).startswith("Round 12 of 12")
    assert tab.locator("[name=next]").get_attribute("aria-disabled") == "true"
    assert "171\u00a0% of the vector’s bytes (171\u00a0% in all 12 rounds)" in tab.inner_text(
        ".stepper-sent"
    )
    press(tab, "back")
    assert said(tab).startswith("Round 11 of 12")
    press(tab, "first")
    assert said(tab).startswith("Start: each of 7 devices")
    press(tab, "last")
    assert cells(tab) == ["7"] * 49


def test_keys_step_and_leave_the_lists_alone(page: Path, tab: Tab) -> None:
    tab.goto(page.as_uri())
    tab.locator(".stepper-stage").focus()
    for key, begin in (
        ("ArrowRight", "Round 1 of 6"),
        ("ArrowRight", "Round 2 of 6"),
        ("ArrowLeft", "Round 1 of 6"),
        ("End", "Round 6 of 6"),
        ("ArrowRight", "Round 6 of 6"),
        ("Home", "Start"),
        ("ArrowLeft", "Start"),
    ):
        tab.keyboard.press(key)
        assert said(tab).startswith(begin)
    tab.locator("input[type=range]").focus()
    tab.keyboard.press("ArrowRight")
    assert said(tab).startswith("Round 1 of 6")
    tab.locator("select[name=devices]").focus()
    tab.keyboard.press("End")
    assert said(tab).startswith("Start: each of 16 devices")
    tab.locator("button[name=next]").focus()
    tab.keyboard.press("Enter")
    assert said(tab).startswith("Round 1 of 30")


@pytest.mark.parametrize("algorithm", SCHEDULES)
def test_every_algorithm_fits_on_16_devices_as_on_2(page: Path, tab: Tab, algorithm: str) -> None:
    tab.goto(page.as_uri())
    for k in (2, 5, 11, 16):
        choose(tab, algorithm, k)
        schedule = SCHEDULES[algorithm](k)
        for number, one in enumerate(((), *schedule.rounds[:2])):
            assert said(tab) == words(schedule, number)
            assert arrows(tab, schedule.chunks) == sorted((t.source, t.target) for t in one)
            assert len(cells(tab)) == k * schedule.chunks
            press(tab, "next")
        press(tab, "last")
        assert set(cells(tab)) <= {"sum", str(k)}
        assert fits(tab)
        assert spilled(tab) == []


def test_the_picture_follows_the_window(page: Path, tab: Tab) -> None:
    tab.goto(page.as_uri())
    choose(tab, "ring", 16)
    tab.set_viewport_size({"width": 360, "height": 700})
    tab.wait_for_function("document.querySelector('.stepper-stage svg').clientWidth < 330")
    assert fits(tab)
    assert spilled(tab) == []


def test_it_plays_to_the_end_and_again(page: Path, tab: Tab) -> None:
    tab.clock.install(time=0)
    tab.goto(page.as_uri())
    tab.clock.pause_at(60)  # else time would pass between two lines of the test, too
    choose(tab, "tree", 4)
    press(tab, "play")
    assert tab.locator("[name=play]").inner_text() == "pause"
    tab.clock.run_for(2500)
    assert said(tab).startswith("Round 2 of 4")
    tab.clock.run_for(20_000)
    assert said(tab).startswith("Round 4 of 4")
    assert tab.locator("[name=play]").inner_text() == "play"
    press(tab, "play")
    assert said(tab).startswith("Start")
    tab.clock.run_for(1500)
    press(tab, "play")
    tab.clock.run_for(20_000)
    assert said(tab).startswith("Round 1 of 4")


def test_nothing_moves_by_itself_for_who_wants_no_motion(page: Path, tab: Tab) -> None:
    tab.emulate_media(reduced_motion="reduce")
    tab.goto(page.as_uri())
    assert tab.locator("[name=play]").is_hidden()
    press(tab, "next")
    arrow = tab.locator(".pic-arrow").last
    assert arrow.evaluate("each => getComputedStyle(each).animationName") == "none"
    tab.emulate_media(reduced_motion="no-preference")
    tab.locator("[name=play]").wait_for(state="visible")


def test_without_scripts_the_storyboard_stands_there(page: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(page.as_uri())
    assert opened.locator(".stepper-still svg[role=img]").is_visible()
    assert opened.locator(".stepper-still .pic-panel").count() == 7
    assert opened.locator("button").first.is_hidden()
    context.close()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_page_overrules_the_system(page: Path, tab: Tab, system: str) -> None:
    tab.emulate_media(color_scheme="dark" if system == "dark" else "light")
    tab.goto(page.as_uri())
    for chosen in ("light", "dark", "auto"):
        tab.evaluate("name => { document.body.dataset.theme = name; }", chosen)
        wanted = theme.COLOURS["ink"][(system if chosen == "auto" else chosen) == "dark"]
        shown = tab.locator(".stepper-stage text.pic-ink").first
        rgb = ", ".join(str(int(wanted[at : at + 2], 16)) for at in (1, 3, 5))
        assert shown.evaluate("each => getComputedStyle(each).fill") == f"rgb({rgb})"
