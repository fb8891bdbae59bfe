"""Colours that the site's style sheet repeats are those of the curve."""

import re
from pathlib import Path

import pytest

from notebooks.drawing.curve import STYLE

SITE = Path(__file__).parents[2] / "docs/_static/site.css"


def colours(rule: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#\w+)", rule))


def own() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r"\.curve \{([^}]*--card[^}]*)\}", STYLE)
    return {"light": colours(light), "dark": colours(dark)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_gives_curves_their_own_colours(theme: str) -> None:
    text = SITE.read_text(encoding="utf-8")
    (rule,) = re.findall(rf'body\[data-theme="{theme}"\] \.curve \{{([^}}]*)\}}', text)
    assert len(own()[theme]) == 5
    assert colours(rule) == own()[theme]
