"""The site: outputs of notebooks, the choice of a framework, formulas, the search."""

from html import unescape
from itertools import product
from pathlib import Path
from re import sub

import pytest
from browser_tabs import NEEDED, SIZES, fits
from playwright.sync_api import Browser, Page as Tab
from started import python

from notebooks.text.notebook import NOTEBOOKS, path_of, read
from notebooks.web.chapters import outputs

CHAPTER = "chapters/multiple-gpus.html"
NEXT = "chapters/multiple-gpus-concise.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `nox -s site` builds it."""
    out = tmp_path_factory.mktemp("site")
    built = python("-m", "sphinx", "-W", "-q", "-E", "docs", out)
    assert built.returncode == 0, built.stderr
    return out


def test_pages_have_every_output_and_every_notebook(site: Path) -> None:
    downloads = {path.read_bytes() for path in site.glob("_downloads/*/*.ipynb")}
    assert downloads == {path_of(*pair).read_bytes() for pair in NOTEBOOKS}
    for name, framework in NOTEBOOKS:
        html = (site / "chapters" / f"{name}.html").read_text(encoding="utf-8")
        text = unescape(sub("<[^>]*>", "", html))
        cells = [cell for cell in read(path_of(name, framework)).cells if cell.id != "setup"]
        printed = [output for cell in cells for output in outputs(cell)]
        assert all(words.rstrip("\n") in text for kind, words in printed if kind == "text")
        pictures = [words for kind, words in printed if kind == "markup"]
        assert all(
            svg.partition("<title")[2].partition(">")[2].partition("<")[0] in html
            for svg in pictures
        )
        assert printed


@NEEDED
def test_what_frameworks_share_is_there_once_and_the_rest_in_tabs(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER)
    assert tab.locator("pre", has_text="def shard_sizes").count() == 1
    tabs = tab.locator(".sd-tab-set", has=tab.locator("pre", has_text="def lenet(")).first
    labels = tabs.locator(":scope > label")
    assert labels.all_inner_texts() == ["PyTorch", "TensorFlow", "JAX", "MXNet"]
    listings = tabs.locator("pre", has_text="def lenet(").all()
    said = tab.locator("p", has_text="In JAX arrays never change")
    for label in labels.all():
        label.click()
        shown = [listing.is_visible() for listing in listings]
        assert shown == [text == label.inner_text() for text in labels.all_inner_texts()]
        assert said.is_visible() == (label.inner_text() == "JAX")
    solution = tab.locator("details", has_text="def scaled_batches(")
    assert solution.locator("pre").first.is_hidden()
    solution.locator("summary").click()
    assert solution.locator("pre").first.is_visible()


def load(tab: Tab, site: Path, page: str, query: str = "") -> None:
    tab.goto(f"{site.name}/{page}{query}")


def chosen(tab: Tab) -> set[str]:
    """The tabs that are open, of the sets that have one for each framework."""
    names: list[str] = tab.evaluate("""
        () => [...document.querySelectorAll(".sd-tab-set")].filter(
            set => set.querySelectorAll(":scope > input").length === 4
        ).map(set => set.querySelector(":scope > input:checked + label").innerText)
    """)
    assert len(names) > 3
    return set(names)


@NEEDED
def test_a_choice_holds_on_the_whole_page_and_on_the_next(site: Path, tab: Tab) -> None:
    load(tab, site, CHAPTER)
    assert chosen(tab) == {"PyTorch"}
    assert "framework" not in tab.url
    label = tab.locator(".sd-tab-label", has_text="JAX").nth(5)
    label.scroll_into_view_if_needed()
    heights = [label.evaluate("each => each.getBoundingClientRect().y")]
    label.click()
    heights.append(label.evaluate("each => each.getBoundingClientRect().y"))
    assert abs(heights[1] - heights[0]) < 2  # what was clicked stays where it is
    assert chosen(tab) == {"JAX"}
    tab.locator(f"article a[href*='{Path(NEXT).name}']").first.click()
    tab.wait_for_url(f"**/{NEXT}?framework=jax**")
    assert chosen(tab) == {"JAX"}
    load(tab, site, CHAPTER)  # by an address that says nothing
    assert chosen(tab) == {"JAX"}


@NEEDED
def test_an_address_chooses_and_goes_along_where_nothing_is_stored(site: Path, tab: Tab) -> None:
    tab.add_init_script("""
        for (const name of ["getItem", "setItem"]) {
            const known = Storage.prototype[name];
            Storage.prototype[name] = function (key, ...rest) {
                if (key.startsWith("sphinx-design")) throw new Error("forbidden");
                return known.call(this, key, ...rest);
            };
        }""")
    load(tab, site, "index.html", "?framework=mxnet")
    tab.locator(".sd-card", has_text="Training on multiple GPUs").click()
    tab.wait_for_url("**/multiple-gpus.html?framework=mxnet")
    assert chosen(tab) == {"MXNet"}


@NEEDED
def test_no_page_is_wider_than_the_window(site: Path, tab: Tab) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page, size in product(pages, SIZES):
        tab.set_viewport_size(size)
        load(tab, site, str(page.relative_to(site)))
        assert fits(tab), page


@NEEDED
def test_every_sign_of_a_formula_is_of_the_site_s_font(
    site: Path, browser: Browser, base_url: str
) -> None:
    pages = [page for page in site.rglob("*.html") if "<math" in page.read_text(encoding="utf-8")]
    assert len(pages) > 2
    # Not in `tab`: what a browser says of its inspection is no complaint of the page.
    tab = browser.new_page(base_url=base_url)
    inspector = tab.context.new_cdp_session(tab)
    for page in pages:
        load(tab, site, str(page.relative_to(site)))
        for domain in ("DOM", "CSS"):
            inspector.send(f"{domain}.enable")
        root = inspector.send("DOM.getDocument")["root"]["nodeId"]
        signs = inspector.send("DOM.querySelectorAll", {"nodeId": root, "selector": "mi, mn, mo"})
        used = {
            (font["familyName"], font["isCustomFont"])
            for node in signs["nodeIds"]
            for font in inspector.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        }
        assert used == {("STIX Two Math", True)}, page
    tab.close()


@NEEDED
def test_the_search_finds_a_chapter(site: Path, tab: Tab) -> None:
    load(tab, site, "search.html", "?q=minibatch")
    tab.locator(f"#search-results a[href*='{CHAPTER}']").first.click()
    assert tab.locator("h1").first.inner_text().startswith("Training on multiple GPUs")
