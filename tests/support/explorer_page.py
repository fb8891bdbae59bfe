"""Pages with an explorer or a picture in it: what their tests set, press and read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as Tab

from notebooks.drawing.explorers import explorer

ASSETS = Path(__file__).parents[2] / "docs/_static"


def written(folder: Path, content: str) -> str:
    """The address of a new page with this content."""
    path = folder / "page.html"
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{(ASSETS / "pictures.css").as_uri()}">'
        f'<body style="margin:16px">{content}</body></html>',
        encoding="utf-8",
    )
    return path.as_uri()


def page_of(name: str, folder: Path, assets: Path = ASSETS) -> str:
    """The address of a page with an explorer in it, beside the files that a site would serve."""
    return written(folder, explorer(name, assets.as_uri()))


def each_of(tab: Tab, figure: str, settings: Sequence[Mapping[str, Any]], read: str) -> list[Any]:
    """What a function of the page reads from the figure after each setting, all in one call."""
    found: list[Any] = tab.evaluate(
        f"""([id, settings]) => settings.map(values => {{
            const root = document.getElementById(id), read = {read};
            for (const [name, value] of Object.entries(values))
                root.querySelector(`[name=${{name}}]`).value = value;
            root.querySelector('select').dispatchEvent(new Event('input', {{bubbles: true}}));
            return read(root, values);
        }})""",
        [figure, settings],
    )
    return found


def values_of(tab: Tab, figure: str) -> dict[str, str]:
    """The values of its controls."""
    found: dict[str, str] = tab.locator(f"#{figure}").evaluate("""root => Object.fromEntries(
        [...root.querySelectorAll('select, input')].map(each => [each.name, each.value]))""")
    return found


def press(tab: Tab, name: str) -> None:
    """Presses a button, also at the end of the steps, where it only looks disabled."""
    tab.locator(f"button[name={name}]").click(force=True)


def said(tab: Tab) -> str:
    """The words of the figure."""
    return tab.locator("[aria-live]").inner_text()


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
