"""The curve of a run: whatever the losses are, it is a small picture with every epoch in it."""

import math
import re
from pathlib import Path
from xml.dom import minidom

import pytest

from notebooks.drawing.curve import HEIGHT, STYLE, TOP, WIDTH, Curve


def grown(losses: list[float], epochs: int = 2) -> Curve:
    curve = Curve(epochs=epochs)
    for epoch in range(epochs):
        for number, loss in enumerate(losses, start=1):
            curve.loss(number / len(losses), loss)
        curve.epoch(losses[-1], 0.5 + epoch / 10)
    return curve


@pytest.mark.parametrize("losses", [[2.3, 1e30], [1.0, math.inf, 2.0], [math.nan, 1.0], [1e6] * 50])
def test_any_losses_make_a_small_picture(losses: list[float]) -> None:
    svg = grown(losses).svg()
    minidom.parseString(svg)
    assert len(svg) < 20_000
    assert "nan" not in svg
    assert "inf" not in svg
    (path,) = re.findall('<path class="loss" d="M([^"h]+)"/>', svg)
    for x, y in (map(float, pair.split()) for pair in path.split("L")):
        assert 0 <= x <= WIDTH
        assert TOP - 1 <= y <= HEIGHT
    assert "0.600 after the last epoch" in svg


def test_in_the_end_every_loss_counts() -> None:
    curve = grown([9.0, 9.0])
    curve.finish([float(step) for step in range(120)])
    assert len(curve.losses) == 60
    first, loss = curve.losses[0]
    assert (round(first, 6), loss) == (round(1 / 60, 6), 0.5)
    assert curve.losses[-1][1] == 118.5
    curve.finish([1.0])
    assert curve.losses == [(1.0, 1.0)]


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_the_site_gives_curves_their_own_colours(number: int) -> None:
    css = (Path(__file__).parents[2] / "docs/_static/site.css").read_text(encoding="utf-8")
    own = re.findall(r"\.curve \{([^}]*--card[^}]*)\}", STYLE)[number]
    site = re.findall(r"data-theme=\"\w+\"\] \.curve \{([^}]*)\}", css)[number]
    colours = re.findall(r"--([\w-]+): (#\w+)", own)
    assert len(colours) == 5
    assert re.findall(r"--([\w-]+): (#\w+)", site) == colours
