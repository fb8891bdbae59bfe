"""A page with an explorer in it: what its tests set, and what they read."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as Tab
from stepper_page import ASSETS, written

SET = """(root, values) => {
    for (const [name, value] of Object.entries(values))
        root.querySelector(`[name=${name}]`).value = value;
    root.querySelector('select').dispatchEvent(new Event('input', {bubbles: true}));
}"""
"""Sets controls of a figure, all at once."""


def page_of(fragment: Callable[[str], str], folder: Path) -> str:
    """The address of a page with an explorer in it, beside the files that a site would serve."""
    return written(folder, fragment(ASSETS.as_uri())).as_uri()


def each_of(tab: Tab, figure: str, settings: Sequence[Mapping[str, Any]], read: str) -> list[Any]:
    """What a function of the page reads from the figure after each setting, all in one call."""
    found: list[Any] = tab.evaluate(
        f"""([id, settings]) => {{
            const root = document.getElementById(id), put = {SET}, read = {read};
            return settings.map(values => {{ put(root, values); return read(root, values); }});
        }}""",
        [figure, settings],
    )
    return found


def values_of(tab: Tab, figure: str) -> dict[str, str]:
    """What its controls have."""
    found: dict[str, str] = tab.locator(f"#{figure}").evaluate("""root => Object.fromEntries(
        [...root.querySelectorAll('select, input')].map(each => [each.name, each.value]))""")
    return found


def linked_to(figure: str) -> list[str]:
    """The states of a figure that docs/explorer.md links to, as the end of an address."""
    text = (ASSETS.parent / "explorer.md").read_text(encoding="utf-8")
    return [unescape(each) for each in re.findall(rf'href="(\?{figure}\.[^"]*)"', text)]


def in_the_address(tab: Tab, *parts: str) -> None:
    """Waits until the address has all these parts; it is written a little later."""
    wanted = "parts => parts.every(each => location.search.includes(each))"
    tab.wait_for_function(wanted, arg=list(parts))


def by_keys(tab: Tab, figure: str) -> list[str]:
    """Changes each visible control by keys alone; the names of those that did not change.

    The focus goes from one to the next by Tab.
    """
    stuck: list[str] = []
    seen: set[str] = set()
    tab.locator(f"#{figure} :is(select, input):visible").first.focus()
    while True:
        name: str | None = tab.evaluate(
            "id => document.activeElement.closest(`#${id}`) && document.activeElement.name || null",
            figure,
        )
        if name is None or name in seen:
            return stuck
        seen.add(name)
        if tab.evaluate("document.activeElement.matches('select, input')"):
            before = values_of(tab, figure)[name]
            for key in ("ArrowUp", "ArrowDown", "ArrowDown"):
                tab.keyboard.press(key)
                if values_of(tab, figure)[name] != before:
                    break
            else:
                stuck.append(name)
        tab.keyboard.press("Tab")


def light_and_dark(tab: Tab, figure: str) -> list[str]:
    """The colour of text and of the card behind it, by the reader's system and by the page."""
    found = []
    for scheme, theme in (("light", ""), ("dark", ""), ("light", "dark"), ("dark", "light")):
        tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        tab.evaluate("theme => { document.body.dataset.theme = theme; }", theme)
        found.append(
            tab.locator(f"#{figure} .explorer-live").evaluate(
                "each => (style => style.backgroundColor + style.color)(getComputedStyle(each))"
            )
        )
    return found
