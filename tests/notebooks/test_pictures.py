"""The pictures: whole SVG, with every round and the right numbers in it."""

import base64
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import walked
from drawn import SVG, of_class, texts

from common.drawing import theme
from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures
from notebooks.drawing.shown import shown

ROOT = Path(__file__).parents[2]
STORYBOARDS = [(name, k) for name in SCHEDULES for k in (2, 3, 5, 8)]

PICTURES: dict[str, Callable[[], str]] = {
    "splits": pictures.three_splits,
    **{f"data-{k}": partial(pictures.data_parallelism, k) for k in (2, 3, 4)},
    "timelines": pictures.timelines,
    "memory": partial(pictures.memory, 4, 60, "data", "zero3"),
    "parts": partial(pictures.who_has_what, "pipeline", 3),
    "mesh": partial(pictures.who_has_what, "tensor", 4, 2),
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name, k in STORYBOARDS},
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_whole_says_what_it_shows_and_can_be_read_on_a_phone(name: str) -> None:
    tree = ElementTree.fromstring(PICTURES[name]())
    assert tree.tag == f"{SVG}svg"
    assert tree.get("role") == "img"
    title, description = tree[0], tree[1]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert title.text
    assert len(description.text or "") > len(title.text)
    assert [each for each in tree.iter() if each.get("id")] == []  # many stand on one page
    drawn = {part for each in tree.iter() for part in each.get("class", "").split()} - {"picture"}
    styled = {f"pic-{part}" for part in (*theme.RULES, "panel", "box", "arrow")}
    assert drawn <= styled
    width = float(tree.get("viewBox", "").split()[2])
    sizes = [float(each.get("font-size", tree.get("font-size", 0))) for each in tree.iter()]
    assert min(sizes) * 358 / width > 8.9  # of 390 pixels a page takes 16 at each side


@pytest.mark.parametrize(("algorithm", "k"), STORYBOARDS)
def test_cells_say_what_the_devices_have(algorithm: str, k: int) -> None:
    panels = of_class(ElementTree.fromstring(pictures.allreduce(algorithm, k)), "panel")
    shown = [[texts(box)[0] for box in of_class(panel, "box")] for panel in panels]
    in_full = shown[0] != ["1"] * len(shown[0])
    expected = []
    for held in walked.sums(SCHEDULES[algorithm](k)):
        masks = held.ravel().tolist()
        expected.append([full(mask, k) if in_full else str(mask.bit_count()) for mask in masks])
    assert shown == expected
    assert set(shown[-1]) == {"sum" if in_full else str(k)}


def full(mask: int, k: int) -> str:
    """The devices in a sum, e.g. 0+2."""
    return "sum" if mask == 2**k - 1 else "+".join(str(d) for d in range(k) if mask & 2**d)


@pytest.mark.parametrize(("k", "sizes"), [(2, [128, 128]), (3, [86, 85, 85]), (4, [64] * 4)])
def test_shards_have_the_sizes_of_the_training(k: int, sizes: list[int]) -> None:
    found = " ".join(texts(ElementTree.fromstring(pictures.data_parallelism(k))))
    assert [int(size) for size in re.findall(r"(\d+) examples", found)][1 : k + 1] == sizes


def test_the_site_overrules_the_system_in_the_same_colours() -> None:
    css = (ROOT / "docs/_static/pictures.css").read_text(encoding="utf-8")
    assert theme.overrides() in css


def test_an_output_is_the_same_picture_in_every_form() -> None:
    svg = pictures.three_splits().replace("Three ways", '3 &lt; 4 "ways"')
    forms = shown(svg)
    assert forms["image/svg+xml"] == svg
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', forms["text/html"])
    assert base64.b64decode(data).decode() == svg
    assert forms["text/plain"] == '3 < 4 "ways" to split training over devices'
    assert 'alt="3 &lt; 4 &quot;ways&quot; to split' in forms["text/html"]
