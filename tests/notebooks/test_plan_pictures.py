"""Pictures of plans: shapes are as long as what they stand for."""

import math
from collections import Counter
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from drawn import SVG, of_class, texts

from common.chapters.strategies import StrategiesOptions
from common.drawing import timelines
from common.parallel.ledger import KEPT
from common.parallel.pipelines import ORDERS, simulate
from notebooks.drawing import pictures


def numbers(rect: Element, *names: str) -> list[float]:
    return [float(rect.get(name, "")) for name in names]


def shapes(tree: Element, name: str) -> list[Element]:
    """The rectangles of a class."""
    return [each for each in of_class(tree, name) if each.tag == f"{SVG}rect"]


@pytest.mark.parametrize(("p", "m"), [(4, 4), (2, 3), (3, 1)])
def test_passes_stand_where_the_simulation_has_them(p: int, m: int) -> None:
    tree = ElementTree.fromstring(pictures.timelines(p, m))
    boxes = list(of_class(tree, "box"))
    assert len(boxes) == 2 * p * m * len(ORDERS)
    assert {texts(box)[0] for box in boxes} == {str(i) for i in range(m)}
    every = [simulate(made(p, m)) for made in ORDERS.values()]
    unit = (480 - 2 * 16 - 62) / max(event.end for events in every for event in events)
    for box, event in zip(boxes, (event for events in every for event in events), strict=True):
        x, width = numbers(box[0], "x", "width")
        assert x == pytest.approx(16 + 62 + event.begin * unit, abs=0.06)
        assert width == pytest.approx(unit, abs=0.06)
        forward = "pic-cell" in box[0].get("class", "").split()
        assert (texts(box)[0], forward) == (str(event.done.microbatch), event.done.forward)


def test_the_bubble_and_the_live_microbatches_are_said() -> None:
    said = texts(ElementTree.fromstring(pictures.timelines(4, 4)))
    assert "32 units of time, 75% of it waiting. Most live microbatches: 1, 1, 1, 1." in said
    assert "14 units of time, 43% of it waiting. Most live microbatches: 4, 4, 4, 4." in said
    assert "14 units of time, 43% of it waiting. Most live microbatches: 4, 3, 2, 1." in said


def test_bars_are_as_long_as_what_a_device_keeps() -> None:
    tree = ElementTree.fromstring(pictures.memory(3, 60, "pipeline", "zero2", microbatches=4))
    bars = [each for each in tree.iter(f"{SVG}rect") if each.get("rx") == "0"]
    options = [StrategiesOptions(way, microbatches=4) for way in ("pipeline", "zero2")]
    peaks = [each.usage(3, 60, 4).peak for each in options]
    kept = [peak[kind][device] for peak in peaks for device in range(3) for kind in KEPT]
    widths = [numbers(bar, "width")[0] for bar in bars]
    largest = max(kept)
    scale = widths[kept.index(largest)] / largest
    for width, size in zip(widths, kept, strict=True):
        assert width == pytest.approx(size * scale, abs=0.1)
    ends = [x + width for x, width in (numbers(bar, "x", "width") for bar in bars)]
    assert max(ends) == pytest.approx(480 - 16 - timelines.MEGABYTES, abs=0.1)
    totals = [f"{sum(kept[i : i + 4]) / 1e6:.2f} MB" for i in range(0, len(kept), 4)]
    assert [each for each in texts(tree) if each.endswith(" MB")] == totals


@pytest.mark.parametrize(
    ("strategy", "devices", "replicas"),
    [("pipeline", 3, 1), ("tensor", 2, 1), ("tensor", 4, 2), ("zero3", 4, 1), ("data", 2, 1)],
)
def test_what_is_filled_is_what_a_device_has(strategy: str, devices: int, replicas: int) -> None:
    tree = ElementTree.fromstring(pictures.who_has_what(strategy, devices, replicas))
    plan = StrategiesOptions(strategy, replicas=replicas).plan(devices)
    rows = {"data": devices}.get(strategy, replicas)
    parts = [(part, plan.shapes[n]) for n, each in plan.weights.items() for part in each * rows]
    shares = [part.size(shape) / math.prod(shape) for part, shape in parts if part]
    assert len(shapes(tree, "ghost")) == len(parts)
    found = Counter(round(share, 1) for share in part_of_outline(tree))
    assert found == Counter(round(share, 1) for share in shares)


def area(rect: Element) -> float:
    width, height = numbers(rect, "width", "height")
    return width * height


def part_of_outline(tree: Element) -> list[float]:
    """Of each filled rectangle, how much it has of the outline around it."""
    outlines = [numbers(each, "x", "y", "width", "height") for each in shapes(tree, "ghost")]
    found = []
    for each in shapes(tree, "cell"):
        x, y, _, _ = numbers(each, "x", "y", "width", "height")
        around = next(
            (wide, high)
            for left, top, wide, high in outlines
            if left - 0.1 <= x < left + wide and top - 0.1 <= y < top + high
        )
        found.append(area(each) / math.prod(around))
    return found
