"""The stepper in a real browser: it reacts, fits, and complains of nothing."""

import pytest
import walked
from browser_tabs import NEEDED, ON_BOTH
from playwright.sync_api import Browser, Page as Tab
from stepper_page import ASSETS, arrows, cells, choose, press, said, spilled, stays_within, written

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import stepper
from notebooks.drawing.frames import words

pytestmark = NEEDED


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with the stepper in it, beside the files that a site would serve."""
    path = written(tmp_path_factory.mktemp("page"), stepper.fragment(ASSETS.as_uri()))
    return path.as_uri()


def test_buttons_step_through_every_round(page: str, tab: Tab) -> None:
    tab.goto(page)
    choose(tab, "ring", 7)
    schedule = SCHEDULES["ring"](7)
    for number, held in enumerate(walked.sums(schedule)):
        assert said(tab) == words(schedule, number)
        assert cells(tab) == [str(mask.bit_count()) for mask in held.ravel().tolist()]
        assert tab.locator("input[type=range]").input_value() == str(number)
        press(tab, "next")
    assert said(tab).startswith("Round 12 of 12")
    assert tab.locator("[name=next]").get_attribute("aria-disabled") == "true"
    assert "171\u00a0% of the vector’s bytes (171\u00a0% in all 12 rounds)" in tab.inner_text(
        ".stepper-sent"
    )
    for button, begin in (("back", "Round 11 of 12"), ("first", "Start: "), ("last", "Round 12")):
        press(tab, button)
        assert said(tab).startswith(begin)


def test_keys_step_and_leave_the_lists_alone(page: str, tab: Tab) -> None:
    tab.goto(page)
    for focus, key, begin in (
        (".stepper-stage", "ArrowRight", "Round 1 of 6"),
        (".stepper-stage", "End", "Round 6 of 6"),
        (".stepper-stage", "ArrowRight", "Round 6 of 6"),
        (".stepper-stage", "ArrowLeft", "Round 5 of 6"),
        (".stepper-stage", "Home", "Start"),
        (".stepper-stage", "ArrowLeft", "Start"),
        ("input[type=range]", "ArrowRight", "Round 1 of 6"),
        ("select[name=devices]", "End", "Start: each of 16 devices"),
        ("button[name=next]", "Enter", "Round 1 of 30"),
    ):
        tab.locator(focus).focus()
        tab.keyboard.press(key)
        assert said(tab).startswith(begin)


@ON_BOTH
@pytest.mark.parametrize("algorithm", SCHEDULES)
def test_every_algorithm_fits_on_16_devices_as_on_2(page: str, tab: Tab, algorithm: str) -> None:
    tab.goto(page)
    for k in (2, 11, 16):
        choose(tab, algorithm, k)
        schedule = SCHEDULES[algorithm](k)
        for number, one in enumerate(((), *schedule.rounds[:2])):
            assert said(tab) == words(schedule, number)
            assert arrows(tab, schedule.chunks) == sorted((t.source, t.target) for t in one)
            press(tab, "next")
        press(tab, "last")
        assert set(cells(tab)) <= {"sum", str(k)}
        assert stays_within(tab)
        assert spilled(tab) == []


def test_the_picture_follows_the_window(page: str, tab: Tab) -> None:
    tab.goto(page)
    choose(tab, "ring", 16)
    tab.set_viewport_size({"width": 360, "height": 700})
    tab.wait_for_function("document.querySelector('.stepper-stage svg').clientWidth < 330")
    assert stays_within(tab)
    assert spilled(tab) == []


def test_it_plays_to_the_end_and_again(page: str, tab: Tab) -> None:
    tab.clock.install(time=0)
    tab.goto(page)
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


def test_nothing_moves_by_itself_for_who_wants_no_motion(page: str, tab: Tab) -> None:
    tab.emulate_media(reduced_motion="reduce")
    tab.goto(page)
    assert tab.locator("[name=play]").is_hidden()
    press(tab, "next")
    arrow = tab.locator(".pic-arrow").last
    assert arrow.evaluate("each => getComputedStyle(each).animationName") == "none"
    tab.emulate_media(reduced_motion="no-preference")
    tab.locator("[name=play]").wait_for(state="visible")


def test_without_scripts_the_storyboard_stands_there(page: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(page)
    assert opened.locator(".stepper-still svg[role=img]").is_visible()
    assert opened.locator(".stepper-still .pic-panel").count() == 7
    assert opened.locator("button").first.is_hidden()
    context.close()
