"""The stepper and the pictures in a real browser: they react, fit, and complain of nothing.

Needs a Chromium on the path, or `CHROME_BIN` that names one.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import walked
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as Tab

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures, stepper, theme
from notebooks.drawing.frames import words

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs/_static"
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROME_BIN") or next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
PICTURES: dict[str, Callable[[], str]] = {
    "splits": pictures.three_splits,
    "data-2": pictures.data_parallelism,
    "data-4": partial(pictures.data_parallelism, 4),
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name in SCHEDULES for k in (3, 4)},
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name in SCHEDULES for k in (5, 8)},
}

pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"no browser: none of {', '.join(NAMES)} is on the path, and CHROME_BIN is not set",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(params=list(SIZES.values()), ids=list(SIZES))
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab that fails the test if the page complains or fetches anything from elsewhere."""
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height})
    opened, complaints, requests = context.new_page(), [], []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url[:50]))
    yield opened
    context.close()
    assert complaints == []
    assert [each for each in requests if not each.startswith(("file:", "data:"))] == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the stepper in it, beside the files that a site would serve."""
    return written(tmp_path_factory.mktemp("page"), stepper.fragment(ASSETS.as_uri()))


def written(folder: Path, content: str) -> Path:
    path = folder / "page.html"
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{(ASSETS / "pictures.css").as_uri()}">'
        f'<body style="margin:16px">{content}</body></html>',
        encoding="utf-8",
    )
    return path


def press(tab: Tab, name: str) -> None:
    """Presses a button, at the end of the rounds too, where it only looks disabled."""
    tab.locator(f"button[name={name}]").click(force=True)


def choose(tab: Tab, algorithm: str, k: int) -> None:
    tab.locator("select[name=algorithm]").select_option(algorithm)
    tab.locator("select[name=devices]").select_option(str(k))


def said(tab: Tab) -> str:
    return tab.locator("[aria-live]").inner_text()


def cells(tab: Tab) -> list[str]:
    return tab.locator(".stepper-stage .pic-box").all_text_contents()


def arrows(tab: Tab, chunks: int) -> list[tuple[int, int]]:
    """The devices from which to which arrows lead, by where they are drawn."""
    places: list[list[float]] = tab.evaluate("""() => {
        const middle = each => { const b = each.getBBox(); return b.x + b.width / 2; };
        const ends = ['circle', 'path.pic-head', '.pic-given', '.pic-got'];
        return [...document.querySelectorAll('.stepper-stage .pic-arrow')].map(arrow =>
            ends.map(end => middle(arrow.querySelector(end))));
    }""")
    columns: list[float] = tab.evaluate("""() =>
        [...document.querySelectorAll('.stepper-stage .pic-box rect')].map(each => {
            const b = each.getBBox(); return b.x + b.width / 2; })""")
    found = []
    for place in places:
        apart = np.abs(np.array(columns)[:, None] - np.array(place))
        assert (apart.min(axis=0) < 1).all()
        found.append((apart.argmin(axis=0) // chunks).tolist())
    assert all(place[:2] == place[2:] for place in found)
    return sorted((place[0], place[1]) for place in found)


def counted(algorithm: str, k: int) -> list[list[str]]:
    """How many devices each cell sums, after each round."""
    walk = walked.sums(SCHEDULES[algorithm](k))
    return [[str(mask.bit_count()) for mask in held.ravel().tolist()] for held in walk]


def fits(tab: Tab) -> bool:
    """Whether nothing is wider than the window, nor than the picture's place."""
    return bool(
        tab.evaluate("""() => [document.documentElement, ...document.querySelectorAll(
            '.stepper-stage')].every(each => each.scrollWidth <= each.clientWidth)""")
    )


def spilled(tab: Tab) -> list[str]:
    """Texts that are wider than their box, reach out of the picture or touch another text."""
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
    tab.clock.install()
    tab.goto(page.as_uri())
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


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_of_a_picture_leaves_its_place(name: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(written(tmp_path, PICTURES[name]()).as_uri())
    assert tab.locator("svg text").count() > 5
    assert fits(tab)
    assert spilled(tab) == []
