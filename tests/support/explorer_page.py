"""Pages with an explorer or a picture in it."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as Tab

from notebooks.drawing.explorers import explorer

ASSETS = Path(__file__).parents[2] / "docs/_static"


def write_page(folder: Path, content: str) -> str:
    """The address of a new page with this content, in a temporary folder beside the assets."""
    shutil.copytree(ASSETS, folder / "assets", dirs_exist_ok=True)
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="assets/pictures.css">'
        f'<body style="margin:16px">{content}</body></html>',
        encoding="utf-8",
    )
    return f"{folder.name}/page.html"


def page_of(name: str, folder: Path) -> str:
    """The address of a page with an explorer in it."""
    return write_page(folder, explorer(name, "assets"))


def each_of(tab: Tab, figure: str, settings: Sequence[Mapping[str, Any]], read: str) -> list[Any]:
    """The results of a function of the page on the figure, after each setting."""
    values_read: list[Any] = tab.evaluate(
        f"""([id, settings]) => settings.map(values => {{
            const root = document.getElementById(id), read = {read};
            for (const [name, value] of Object.entries(values))
                root.querySelector(`[name=${{name}}]`).value = value;
            root.querySelector('select').dispatchEvent(new Event('input', {{bubbles: true}}));
            return read(root, values);
        }})""",
        [figure, settings],
    )
    return values_read
