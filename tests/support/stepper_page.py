"""A page with the stepper, or a picture, in it: what its tests press, and what they read."""

from pathlib import Path

import numpy as np
from playwright.sync_api import Page as Tab

ASSETS = Path(__file__).parents[2] / "docs/_static"


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


def stays_within(tab: Tab) -> bool:
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
