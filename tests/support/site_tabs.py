"""What tests ask a browser's tab about a page of the site."""

from playwright.sync_api import Page as Tab

from common.backends.frameworks import FRAMEWORKS

FORBIDDEN = """
    for (const name of ["getItem", "setItem"]) {
        const known = Storage.prototype[name];
        Storage.prototype[name] = function (key, ...rest) {
            if (key.startsWith("sphinx-design")) throw new Error("forbidden");
            return known.call(this, key, ...rest);
        };
    }
"""
"""A browser that keeps nothing about tabs; the theme may keep its own."""


def chosen(tab: Tab) -> set[str]:
    """The tabs that are open, of the sets that have one for each framework."""
    found: list[str] = tab.evaluate(
        """
        count => [...document.querySelectorAll(".sd-tab-set")].filter(
            set => set.querySelectorAll(":scope > input").length === count
        ).map(set => set.querySelector(":scope > input:checked + label").innerText)
    """,
        len(FRAMEWORKS),
    )
    assert len(found) > 3
    return set(found)


def choose(tab: Tab, label: str, number: int = 0) -> None:
    tab.locator(".sd-tab-label", has_text=label).nth(number).click()


def background(tab: Tab, selector: str) -> str:
    found: str = tab.locator(selector).first.evaluate("each => getComputedStyle(each).fill")
    return found


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"
