"""The pictures: whole SVG, every round and every message in it, and colours that stand apart."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import walked

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures, theme

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
STORYBOARDS = [(name, k) for name in SCHEDULES for k in range(2, 9)]

PICTURES: dict[str, Callable[[], str]] = {
    "splits": pictures.three_splits,
    **{f"data-{k}": partial(pictures.data_parallelism, k) for k in (2, 3, 4)},
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name, k in STORYBOARDS},
}


def of_class(tree: Element, name: str) -> Iterator[Element]:
    """What plays a part, in its order."""
    for each in tree.iter():
        if f"pic-{name}" in each.get("class", "").split():
            yield each


def texts(tree: Element) -> list[str]:
    return [each.text or "" for each in tree.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_whole_and_says_what_it_shows(name: str) -> None:
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


@pytest.mark.parametrize("name", PICTURES)
def test_text_can_be_read_on_a_phone(name: str) -> None:
    tree = ElementTree.fromstring(PICTURES[name]())
    width = float(tree.get("viewBox", "").split()[2])
    sizes = [float(each.get("font-size", tree.get("font-size", 0))) for each in tree.iter()]
    assert min(sizes) * 358 / width > 8.9  # of 390 pixels a page takes 16 at each side


@pytest.mark.parametrize(("algorithm", "k"), STORYBOARDS)
def test_a_storyboard_has_each_round_and_each_message(algorithm: str, k: int) -> None:
    schedule = SCHEDULES[algorithm](k)
    panels = list(of_class(ElementTree.fromstring(pictures.allreduce(algorithm, k)), "panel"))
    assert len(panels) == len(schedule.rounds) + 1
    for panel, transfers in zip(panels, ((), *schedule.rounds), strict=True):
        expected = sorted((t.source, t.target, len(t.chunks), t.adds) for t in transfers)
        assert sorted(messages(panel, k)) == expected


def messages(panel: Element, k: int) -> Iterator[tuple[int, int, int, bool]]:
    """Source, target, number of chunks and whether it adds, of each arrow, by where it is drawn."""
    words = list(panel.iter(f"{SVG}text"))
    columns = {each.get("x"): int(re.sub(r"\D", "", str(each.text))) for each in words[1 : k + 1]}
    boxes = [each[0] for each in of_class(panel, "box")]
    for arrow in of_class(panel, "arrow"):
        given, got, line, head, _ = arrow
        ends = [re.match(r"M(\S+) ", each.get("d", "")) for each in (line, head)]
        source, target = (columns[end[1]] for end in ends if end)
        heights = {(each.get("y"), each.get("height")) for each in (given, got)}
        ((top, height),) = heights
        within = [
            each
            for each in boxes
            if each.get("x") == got.get("x")
            and 0 <= float(each.get("y", 0)) - float(top or 0) < float(height or 0)
        ]
        yield source, target, len(within), line.get("class") == "pic-adds"


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


def test_what_has_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="2 to 8 devices, not 9"):
        pictures.allreduce("ring", 9)
    with pytest.raises(ValueError, match="2 to 4 devices, not 1"):
        pictures.data_parallelism(1)
    with pytest.raises(KeyError):
        pictures.allreduce("round")


def test_the_site_overrules_the_system_in_the_same_colours() -> None:
    css = (ROOT / "docs/_static/pictures.css").read_text(encoding="utf-8")
    assert theme.overrides() in css
    for name in theme.COLOURS:
        assert css.count(f"--pic-{name}:") == 2


@pytest.mark.parametrize("index", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(index: int) -> None:
    colours = {name: rgb(pair[index]) for name, pair in theme.COLOURS.items()}
    pairs = [(colours[part], colours["card"]) for part in ("ink", "muted", "sent")]
    pairs.append((colours["on-sum"], colours["sum"]))
    for part, share in (("sum", 0.1), ("sum", 0.3), ("sum", 0.5), ("data", 0.25), ("sent", 0.2)):
        behind = [
            share * a + (1 - share) * b for a, b in zip(colours[part], colours["card"], strict=True)
        ]
        pairs.append((colours["ink"], behind))
    assert min(contrast(*pair) for pair in pairs) >= 4.5  # WCAG 2.2, 1.4.3
    lines = [colours[part] for part in ("sum", "sent", "data", "line")]
    assert min(contrast(line, colours["card"]) for line in lines) >= 3  # 1.4.11


def rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast ratio of two colours, 1 to 21, as WCAG defines it."""

    def luminance(colour: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)
