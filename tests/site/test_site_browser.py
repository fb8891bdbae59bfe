"""The site in a real browser, from the disk: a framework is chosen once, and all pages follow.

Needs a Chromium on the path, or `CHROME_BIN` that names one.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from chromium import NEEDED, SIZES
from playwright.sync_api import Browser, Page as Tab
from site_tabs import FORBIDDEN, background, choose, chosen, rgb

from notebooks.drawing import theme
from notebooks.text.sources import ROOT

pytestmark = NEEDED

CHAPTER = "chapters/multiple-gpus.html"
NEXT = "chapters/multiple-gpus-concise.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with the outputs of the notebooks that are as their text says."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "notebooks.site", f"--out={out}", "--drafts"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


def load(tab: Tab, site: Path, page: str, query: str = "") -> None:
    tab.goto((site / page).as_uri() + query)


def test_a_choice_holds_on_the_whole_page_and_on_the_next(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER)
    assert chosen(tab) == {"PyTorch"}
    assert "framework" not in tab.url
    choose(tab, "JAX")
    assert chosen(tab) == {"JAX"}
    assert tab.url.endswith("?framework=jax")
    tab.locator(f"article a[href*='{Path(NEXT).name}']").first.click()
    tab.wait_for_url(f"**/{NEXT}**")
    assert chosen(tab) == {"JAX"}
    assert tab.url.endswith("?framework=jax")
    load(tab, site, CHAPTER)  # by an address that says nothing
    assert chosen(tab) == {"JAX"}


def test_what_was_clicked_stays_where_it_is(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER)
    label = tab.locator(".sd-tab-label", has_text="MXNet").nth(5)
    label.scroll_into_view_if_needed()
    before = label.bounding_box()
    label.click()
    after = label.bounding_box()
    assert chosen(tab) == {"MXNet"}
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 2


def test_an_address_chooses_and_goes_along_where_nothing_is_stored(site: Path, tab: Tab) -> None:
    tab.add_init_script(FORBIDDEN)
    load(tab, site, "index.html", "?framework=mxnet")
    tab.locator(".sd-card", has_text="Training on multiple GPUs").click()
    tab.wait_for_url("**/multiple-gpus.html?framework=mxnet")
    assert chosen(tab) == {"MXNet"}


@pytest.mark.parametrize("query", ["?framework=mxnet", "?framework=mxnet#training"])
def test_an_address_chooses(site: Path, tab: Tab, query: str) -> None:
    load(tab, site, CHAPTER, query)
    assert chosen(tab) == {"MXNet"}
    assert tab.url.endswith(query)


def test_an_unknown_framework_in_the_address_changes_nothing(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER, "?framework=jax")
    load(tab, site, CHAPTER, "?framework=theano")
    assert chosen(tab) == {"JAX"}
    assert tab.url.endswith("?framework=jax")


@pytest.mark.parametrize("system", ["light", "dark"])
def test_pictures_follow_the_page(site: Path, tab: Tab, system: str) -> None:
    tab.emulate_media(color_scheme="dark" if system == "dark" else "light")
    load(tab, site, "index.html")
    toggle = tab.locator(".theme-toggle:visible").first
    seen = {}
    for _ in range(3):
        seen[tab.evaluate("document.body.dataset.theme")] = background(tab, ".pic-card")
        toggle.click()
    light, dark = theme.COLOURS["card"]
    auto = dark if system == "dark" else light
    assert seen == {"auto": rgb(auto), "light": rgb(light), "dark": rgb(dark)}


def test_no_page_is_wider_than_the_window(site: Path, tab: Tab) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        load(tab, site, str(page.relative_to(site)))
        width = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{page.name} is {width} pixels too wide"


def test_code_is_copied_and_output_is_not(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER)
    assert tab.locator("div.highlight-python:not(.output) button.copybtn").count() > 10
    load(tab, site, "reference/commands.html")
    assert tab.locator(".output pre").count() > 5
    assert tab.locator("button.copybtn").count() == 0


def test_the_search_finds_a_chapter(site: Path, tab: Tab) -> None:
    load(tab, site, "search.html", "?q=minibatch")
    found = tab.locator(f"#search-results a[href*='{CHAPTER}']").first
    found.wait_for()
    found.click()
    assert tab.locator("h1").first.inner_text().startswith("Training on multiple GPUs")


def test_code_of_100_columns_fits_on_a_desktop(site: Path, browser: Browser) -> None:
    width, height = SIZES["desktop"]
    opened = browser.new_page(viewport={"width": width, "height": height})
    load(opened, site, "sources/frameworks/jax/scratch.py.html")
    longest = opened.evaluate("""() => {
        const code = document.querySelector("pre");
        const lines = code.innerText.split("\\n").map(line => line.length);
        return [Math.max(...lines), code.scrollWidth - code.clientWidth];
    }""")
    assert 97 <= longest[0] <= 100
    assert longest[1] == 0
    opened.close()


def test_without_scripts_all_can_be_read(site: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    load(opened, site, CHAPTER)
    pictures = opened.locator("svg[role=img]")
    assert all(pictures.nth(number).is_visible() for number in range(2))
    tabs = opened.locator(".sd-tab-set").nth(1)
    contents = tabs.locator(".sd-tab-content")
    assert [each.is_visible() for each in contents.all()] == [True, False, False, False]
    tabs.locator(".sd-tab-label", has_text="JAX").click()
    assert [each.is_visible() for each in contents.all()] == [False, False, True, False]
    assert "def lenet" in contents.nth(2).inner_text()
    context.close()
