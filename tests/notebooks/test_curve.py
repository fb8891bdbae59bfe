"""The curve of a run: whatever the losses are, it is a small picture with every epoch in it."""

import math
import re
from xml.dom import minidom

import pytest

from notebooks.drawing.curve import HEIGHT, TOP, WIDTH, Curve


def grown(losses: list[float], epochs: int = 2) -> Curve:
    curve = Curve(epochs=epochs)
    for epoch in range(epochs):
        for number, loss in enumerate(losses, start=1):
            curve.loss(number / len(losses), loss)
        curve.epoch(losses[-1], 0.5 + epoch / 10)
    return curve


def line(curve: Curve, name: str) -> list[tuple[float, float]]:
    """The points of the line of this class, in the picture's units."""
    (path,) = re.findall(f'<path class="{name}" d="M([^"H]+)"/>', curve.svg().replace("h26", "H"))
    return [(float(x), float(y)) for x, y in (pair.split() for pair in path.split("L"))]


@pytest.mark.parametrize(
    "losses", [[2.3, 1.0], [2.3, 1e30], [1.0, math.inf, 2.0], [math.nan, 1.0], [1e6] * 50]
)
def test_any_losses_make_a_small_picture(losses: list[float]) -> None:
    svg = grown(losses).svg()
    minidom.parseString(svg)
    assert len(svg) < 20_000
    assert "nan" not in svg
    assert "inf" not in svg
    for x, y in line(grown(losses), "loss"):
        assert 0 <= x <= WIDTH
        assert TOP - 1 <= y <= HEIGHT


def test_it_falls_where_the_loss_falls_and_says_the_accuracy() -> None:
    curve = grown([2.0, 1.5, 1.0])
    heights = [y for _, y in line(curve, "loss")]
    assert heights[0] < heights[1] < heights[2]
    assert [x for x, _ in line(curve, "accuracy")] == sorted(x for x, _ in line(curve, "accuracy"))
    assert "0.600 after the last epoch" in curve.svg()
    assert "before the end of the first epoch" in Curve().svg()


def test_in_the_end_every_loss_counts() -> None:
    curve = grown([9.0, 9.0])
    curve.finish([float(step) for step in range(120)])
    assert len(curve.losses) == 60
    first, loss = curve.losses[0]
    assert (round(first, 6), loss) == (round(1 / 60, 6), 0.5)
    assert curve.losses[-1][1] == 118.5
    curve.finish([1.0])
    assert curve.losses == [(1.0, 1.0)]
