"""A chapter: prose and blocks in MyST, read for one framework as the cells of its notebook.

CONTRIBUTING.md explains the blocks. The site has Sphinx read the same text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

FENCE: Final = re.compile(r"^ *(```|~~~|:::).*", re.MULTILINE)

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
    only: Sequence[str]


def blocks(name: str) -> list[Cell]:
    """Prose and blocks of a chapter, of all frameworks. Raises RunError if it cannot be read.

    They are numbered from each heading on, over all frameworks, so that ids are the same in all.
    """
    read, section, count = [], "start", 0
    text = (TEXTS / f"{name}.md").read_text(encoding="utf-8")
    try:
        for kind, words, body, only in _parts(text, FRAMEWORKS):
            if kind == "prose" and (heading := re.match(r"#+ (.+)", body)):
                anchor = re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")
                section, count = anchor[:48], 0
            count += kind != "setup"
            place = kind if kind == "setup" else f"{section}-{count}"
            read.append(Cell(place, kind, words, body, only))
    except ValueError as error:
        raise RunError(f"{name}.md: {error}") from None
    return read


def _parts(text: str, only: Sequence[str]) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """The kind, words and text of each block, and of prose up to a block or a heading."""
    start = 0
    for block in [*BLOCK.finditer(text), None]:
        prose = text[start : block.start() if block else None].strip()
        if fence := FENCE.search(prose):
            raise ValueError(f"{fence[0]}: code that is not run, or a block without an end")
        for part in filter(None, re.split(r"\n(?=#+ )", prose)):
            yield "prose", "", part.strip(), only
        if block is None:
            return
        start, (kind, words, body) = block.end(), block.group(2, 3, 4)
        if kind == "only":
            if not words or not {*words.split()} <= {*FRAMEWORKS}:
                raise ValueError(f"only {words}: no such framework")
            yield from _parts(body, words.split())
        elif kind in KINDS:
            yield kind, words, body, only
        else:
            raise ValueError(f"there is no block {kind!r}")


def cells(name: str, framework: str | None) -> Iterator[Cell]:
    """The blocks of a chapter in a framework, or of the shared chapter, with their code.

    Raises RunError if the text or a listing of it cannot be read.
    """
    listings = Listings()
    for cell in blocks(name):
        if framework not in (None, *cell.only):
            continue
        words = cell.words.replace("{framework}", str(framework))
        if cell.kind == "setup":
            yield replace(cell, text=SETUP.replace("{arguments}", words))
        elif cell.kind in ("listing", "solution", "cell"):
            file, *names = words.split() or [""]
            path = (ROOT if "/" in file else ROOT / "frameworks" / str(framework)) / file
            code = cell.text.replace("{framework}", str(framework)).strip("\n")
            listing = listings.cell(path, names) if names else ""
            yield replace(cell, text="\n\n\n".join(filter(None, [listing, code])))
        else:
            yield cell
