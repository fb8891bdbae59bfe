"""Explorers, with their own Python, and pictures in a real browser."""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browser_tabs import NEEDED, SIZES, fits, watched
from explorer_shown import Shown, a_record
from playwright.sync_api import Browser, FilePayload, Page as Tab, expect

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures
from notebooks.explorers.figures import FIGURES, explorer
from notebooks.text.sources import ROOT
from notebooks.web import runtime

expect.set_options(timeout=60_000)  # Python has to load first, on a busy machine

pytestmark = NEEDED
LIVE = pytest.mark.skipif(
    not runtime.is_there(),
    reason="no Pyodide: `python -m notebooks.web.runtime` fetches it",
)

LARGE = {"millions": 10**6, "layers": 100, "microbatches": 8}

LARGEST: dict[str, list[dict[str, Any]]] = {
    "pipeline": [
        *({"devices": p, "microbatches": m} for p, m in ((1, 1), (16, 64))),
        {"devices": 4, "schedule": "gpipe"},
    ],
    "memory": [{**LARGE, "strategy": s, "devices": 8} for s in ("data", "pipeline")],
    "overlap": [{"tokens": 4095, "layers": 8}, {"tokens": 128, "link": "ethernet"}],
    "rounds": [
        {"algorithm": s, "devices": k, "round": 2} for s, k in product(SCHEDULES, (2, 11, 16))
    ],
}
"""Choices with many devices, and the longest numbers."""

COMPLAINTS = {
    "careful": "console.warn('careful')",
    "missing is not defined": "missing()",
    "none.js": "document.write('<script src=none.js></' + 'script>')",
    "http://localhost/away.png": "new Image().src = 'http://localhost/away.png'",
}
"""Scripts, by what their page complains of."""


def write_page(folder: Path, content: str) -> str:
    """The address of a new page with this content, in a temporary folder beside the assets."""
    shutil.copytree(ROOT / "docs/_static", folder / "assets", dirs_exist_ok=True)
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="assets/pictures.css">'
        f'<body style="margin:16px">{content}</body></html>',
        encoding="utf-8",
    )
    return f"{folder.name}/page.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with all explorers."""
    folder = tmp_path_factory.mktemp("live")
    runtime.bring(folder / "assets")
    figures = "".join(explorer(name, "assets") for name in FIGURES)
    return write_page(folder, f'{figures}<a href="?overlap.layers=3">a link</a>')


def says(tab: Tab, figure: str, **choice: Any) -> None:
    """Waits until a figure says what Python does; it may have to load first."""
    words = tab.locator(f"#{figure} .explorer-words")
    expect(words).to_have_text(Shown(figure, **choice).text())


def spilled(tab: Tab) -> list[str]:
    """Texts that leave their box or the picture, or touch another text."""
    found: list[str] = tab.evaluate("""() => {
        const found = [], within = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 &&
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


@LIVE
def test_a_change_or_a_readers_own_record_shows_what_python_computes(page: str, tab: Tab) -> None:
    tab.goto(page)
    says(tab, "memory")
    tab.locator("#memory [name=devices]").fill("7")
    tab.locator("#memory [name=strategy]").select_option("zero2")
    says(tab, "memory", devices=7, strategy="zero2")
    text = Shown("memory", devices=7, strategy="zero2").text("scrolled")
    assert tab.locator("#memory .explorer-scrolled").text_content() == text
    tab.locator("#memory [name=devices]").fill("700")
    tab.locator("#memory [name=devices]").blur()
    expect(tab.locator("#memory [name=devices]")).to_have_value("64")
    tab.wait_for_function("location.search === '?memory.strategy=zero2&memory.devices=64'")
    # The address brings the choice back, and a link on the page another one.
    tab.goto(f"{page}?overlap.layers=2&overlap.link=pcie&memory.card=x")
    says(tab, "overlap", layers=2, link="pcie")
    expect(tab.locator("#memory [name=card]")).to_have_value("a100")
    tab.get_by_text("a link", exact=True).click()
    says(tab, "overlap", layers=3)
    tab.go_back()
    says(tab, "overlap", layers=2, link="pcie")
    for content in (a_record(), "{"):
        file = FilePayload(name="1.json", mimeType="text/json", buffer=content.encode())
        tab.locator("#pipeline [type=file]").set_input_files(file)
        says(tab, "pipeline", record=content, devices=3, microbatches=5, schedule="gpipe")
        expect(tab.locator("#pipeline [name=devices]")).to_have_value("3")
        assert spilled(tab) == []


@LIVE
def test_buttons_keys_and_time_step(page: str, tab: Tab) -> None:
    tab.clock.install(time=0)
    tab.goto(page)
    slider, play = tab.locator("#rounds [type=range]"), tab.locator("#rounds [name=play]")
    stage, back = "#rounds .explorer-stage", "#rounds [name=back]"
    for place, key, expected in (
        ("#rounds [name=next]", "Enter", 1),
        ("#rounds [name=last]", "Enter", 6),
        (stage, "Home", 0),
        (stage, "ArrowRight", 1),
        ("#rounds [type=range]", "ArrowRight", 2),
        (back, "Enter", 1),
        (back, "ArrowLeft", 0),
        (back, "Enter", 0),
        (stage, "End", 6),
        (stage, "ArrowRight", 6),
    ):
        tab.locator(place).focus()
        tab.keyboard.press(key)
        expect(slider).to_have_value(str(expected))
        says(tab, "rounds", round=expected)
    expect(tab.locator("#rounds [name=next]")).to_have_attribute("aria-disabled", "true")
    tab.locator("#rounds [name=algorithm]").select_option("star")
    expect(slider).to_have_value("0")
    play.click()
    expect(play).to_have_text("pause")
    for step in ("1", "2"):
        tab.clock.run_for(1500)
        expect(slider).to_have_value(step)
    expect(play).to_have_text("play")
    tab.emulate_media(reduced_motion="reduce")
    tab.reload()
    expect(play).to_be_hidden()


@LIVE
def test_nothing_is_wider_than_the_window(page: str, tab: Tab) -> None:
    tab.goto(page)
    every = [(figure, choice) for figure, choices in LARGEST.items() for choice in choices]
    for size in SIZES:
        tab.set_viewport_size(size)
        assert fits(tab)
        assert spilled(tab) == []
        for figure, choice in every:
            query = "&".join(f"{figure}.{name}={value}" for name, value in choice.items())
            tab.evaluate(
                f"history.pushState(null, '', '?{query}'), "
                "dispatchEvent(new PopStateEvent('popstate'))"
            )
            says(tab, figure, **choice)
            assert fits(tab), choice
            stages = tab.locator(".explorer-stage").all()
            assert all(x.evaluate("x => x.scrollWidth <= x.clientWidth") for x in stages), choice
            if choice.get("devices") != 16:
                assert spilled(tab) == [], choice


@LIVE
def test_without_python_the_first_picture_stays(page: str, browser: Browser, base_url: str) -> None:
    for scripts in (False, True):
        context = browser.new_context(base_url=base_url, java_script_enabled=scripts)
        tab = context.new_page()
        tab.route("**/pyodide/**", lambda route: route.abort())
        tab.goto(page)
        field = tab.locator("#memory [name=devices]")
        assert field.is_visible() == scripts
        if scripts:
            field.fill("7")
            expect(tab.locator("#memory .explorer-status")).to_contain_text("cannot be loaded")
        says(tab, "memory")
        assert tab.locator("#memory svg[role=img]").is_visible()
        context.close()


def test_no_text_of_a_picture_leaves_its_place(tab: Tab, tmp_path: Path) -> None:
    names = "three-splits", "data-parallelism", "mesh", "pair"
    drawn = [pictures.drawing(name) for name in names]
    drawn += [pictures.allreduce(name, k) for name in SCHEDULES for k in (2, 3, 4)]
    for picture, size in product(drawn, SIZES):
        tab.set_viewport_size(size)
        tab.goto(write_page(tmp_path, picture))
        assert tab.locator("svg text").count() > 5
        assert fits(tab)
        assert spilled(tab) == []


@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_what_a_page_complains_of_fails_the_test(
    complaint: str, browser: Browser, base_url: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=complaint), watched(browser, base_url) as tab:
        tab.goto(write_page(tmp_path, f"<script>{COMPLAINTS[complaint]}</script>"))
