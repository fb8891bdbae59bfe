"""A chapter: prose and blocks in MyST, read for one framework as the cells of its notebook.

CONTRIBUTING.md explains the blocks. The site has Sphinx read the same text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks.text.sources import ROOT, Listings

CHAPTERS: Final = (
    *("multiple-gpus", "multiple-gpus-concise", "strategies", "native", "allreduce", "exercises"),
)
"""The chapters that have a notebook for each framework."""

SHARED: Final = "parity"
"""The chapter that has one notebook for all frameworks."""

TEXTS: Final = ROOT / "docs" / "chapters"

BLOCK: Final = re.compile(r"^(```|:::)\{(\w+)\} *(.*)\n((?:.*\n)*?)\1 *$", re.MULTILINE)

FENCE: Final = re.compile(r"^ *(```|~~~|:::)", re.MULTILINE)

KINDS: Final = ("setup", "listing", "solution", "cell", "picture", "explorer")

SETUP: Final = """import sys
from pathlib import Path

here = Path.cwd()
clone = next((at for at in (here, *here.parents) if (at / "frameworks").is_dir()), None)
if clone is None:
    raise FileNotFoundError(f"no folder above {here} has `frameworks`: open this in a clone")
if str(clone) not in sys.path:
    sys.path.insert(0, str(clone))

from notebooks.classroom.lesson import Lesson, show
from notebooks.drawing import pictures

lesson = Lesson({arguments})"""
"""The first code of a notebook: the project is a folder above it, and is not installed."""


@dataclass(frozen=True)
class Cell:
    """Prose, or a block: its kind, the words after it, its text, and the frameworks that have it.

    Its `id` says its place.
    """

    id: str
    kind: str
    words: str
    text: str
    only: tuple[str, ...]


class _Reader:
    """The cells read so far of a chapter, of all frameworks."""

    def __init__(self, path: Path) -> None:
        self.path, self.whole = path, path.read_text(encoding="utf-8")
        self.section, self.count = "start", 0
        self.cells: list[Cell] = []
        self.read(0, len(self.whole), FRAMEWORKS)

    def read(self, start: int, end: int, only: tuple[str, ...]) -> None:
        """Reads the text between two places, for some frameworks."""
        for block in BLOCK.finditer(self.whole, start, end):
            self.prose(start, block.start(), only)
            start, (kind, words, body) = block.end(), block.group(2, 3, 4)
            if kind == "only":
                if not words or not set(words.split()) <= set(FRAMEWORKS):
                    raise self.error(block.start(), f"only {words}: no such framework")
                self.read(*block.span(4), tuple(words.split()))
            elif kind in KINDS:
                self.add(kind, words, body, only)
            else:
                raise self.error(block.start(), f"there is no block {kind!r}")
        self.prose(start, end, only)

    def prose(self, start: int, end: int, only: tuple[str, ...]) -> None:
        """Adds prose; each heading begins a block."""
        if fence := FENCE.search(self.whole, start, end):
            raise self.error(fence.start(), "code that is not run, or a block without an end")
        for part in filter(None, re.split(r"\n(?=#+ )", self.whole[start:end].strip())):
            if heading := re.match(r"#+ (.+)", part):
                self.section, self.count = slug(heading[1])[:48], 0
            self.add("prose", "", part.strip(), only)

    def add(self, kind: str, words: str, text: str, only: tuple[str, ...]) -> None:
        """Adds a cell, numbered over all frameworks, so that ids are the same in all."""
        self.count += kind != "setup"
        name = kind if kind == "setup" else f"{self.section}-{self.count}"
        self.cells.append(Cell(name, kind, words, text, only))

    def error(self, place: int, problem: str) -> RunError:
        """An error that names the line."""
        line = self.whole.count("\n", 0, place) + 1
        return RunError(f"{self.path.name}:{line}: {problem}")


def slug(heading: str) -> str:
    """A heading as an anchor: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def blocks(name: str) -> list[Cell]:
    """Prose and blocks of a chapter, of all frameworks. Raises RunError if it cannot be read."""
    return _Reader(TEXTS / f"{name}.md").cells


def cells(name: str, framework: str | None) -> Iterator[Cell]:
    """The blocks of a chapter in a framework, or of the shared chapter, with their code.

    Raises RunError if the text or a listing of it cannot be read.
    """
    listings = Listings()
    for cell in blocks(name):
        if framework in (None, *cell.only):
            yield replace(cell, text=_text(cell, str(framework), listings))


def _text(cell: Cell, framework: str, listings: Listings) -> str:
    """The text of a cell in a framework; of a picture, its expression."""
    words, code = (text.replace("{framework}", framework) for text in (cell.words, cell.text))
    match cell.kind:
        case "setup":
            return SETUP.replace("{arguments}", words)
        case "listing" | "solution" | "cell":
            file, *names = words.split() or [""]
            path = (ROOT if "/" in file else ROOT / "frameworks" / framework) / file
            listing = listings.cell(path, names) if names else ""
            return "\n\n\n".join(filter(None, [listing, code.strip("\n")]))
        case "picture":
            return words
        case _:
            return cell.text
