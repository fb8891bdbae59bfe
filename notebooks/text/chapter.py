"""A chapter: prose and blocks in Markdown, read for one framework as a list of cells.

CONTRIBUTING.md explains the blocks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks.text.sources import ROOT, Listings

CHAPTERS: Final[dict[str, str]] = {
    "multiple-gpus": "scratch",
    "multiple-gpus-concise": "concise",
    "strategies": "strategies",
    "allreduce": "scratch",
}
"""The chapters that have a notebook for each framework, and what of it they are about."""

VIRTUAL: Final = {"strategies": 4}
"""The chapters that always have virtual devices, and how many: few machines have so many GPUs."""

SHARED: Final = "parity"
"""The chapter that has one notebook for all frameworks."""

TEXTS: Final = ROOT / "notebooks" / "chapters"

BLOCK: Final = re.compile(r"(```|:::)\{(\w+)\}\s*(.*)")

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

Kind = Literal["prose", "code", "picture", "stepper"]


@dataclass(frozen=True)
class Cell:
    """One cell: Markdown, code, or the expression of a picture. Its `id` says its place."""

    id: str
    kind: Kind
    text: str
    folded: bool = False


@dataclass
class _Reader:
    """What has been read of a chapter so far, for one framework."""

    path: Path
    framework: str | None
    listings: Listings = field(default_factory=Listings)
    section: str = "start"
    count: int = 0

    def cell(self, kind: Kind, text: str, *, folded: bool = False) -> Cell:
        """The next cell; those of other frameworks count too, so that ids are the same in all."""
        self.count += 1
        return Cell(f"{self.section}-{self.count}", kind, text, folded)

    def prose(self, lines: Sequence[str]) -> Iterator[Cell]:
        """Cells of prose: each heading begins one."""
        text = "\n".join(lines).strip()
        for part in re.split(r"\n(?=#+ )", text) if text else []:
            if heading := re.match(r"#+ (.+)", part):
                self.section, self.count = slug(heading[1])[:48], 0
            yield self.cell("prose", part.strip())

    def block(self, name: str, words: str, body: Sequence[str], line: int) -> Iterator[Cell]:
        """The cells of one block. Raises RunError, with its place, if it is none."""
        match name:
            case "only":
                yield from self.only(words.split(), body, line)
            case "listing" | "solution":
                yield self.cell("code", self.listing(words.split()), folded=name == "solution")
            case "cell":
                text = "\n".join(body).strip("\n")
                yield self.cell("code", text.replace("{framework}", str(self.framework)))
            case "picture":
                yield self.cell("picture", words)
            case "stepper":
                yield self.cell("stepper", "")
            case _:
                raise RunError(f"{self.path.name}:{line}: there is no block {name!r}")

    def listing(self, words: Sequence[str]) -> str:
        """Definitions of a file: of the framework's, or, with a slash, of the project's.

        `{framework}` in a path becomes the framework's name.
        """
        file, *names = words
        folder = ROOT if "/" in file else ROOT / "frameworks" / str(self.framework)
        return self.listings.cell(folder / file.format(framework=self.framework), names)

    def only(self, names: Sequence[str], body: Sequence[str], line: int) -> Iterator[Cell]:
        """What is said to some frameworks; the others count it and leave it out."""
        if not names or not set(names) <= set(FRAMEWORKS):
            raise RunError(f"{self.path.name}:{line}: only {', '.join(names)}: no such framework")
        reader = self
        if self.framework not in names:
            reader = _Reader(self.path, names[0], section=self.section, count=self.count)
        cells = list(reader.cells(body, line))
        self.count = reader.count
        yield from cells if reader is self else []

    def cells(self, lines: Sequence[str], offset: int = 0) -> Iterator[Cell]:
        """The cells of these lines, the first of which is the one after `offset`."""
        prose: list[str] = []
        number = 0
        while number < len(lines):
            found = BLOCK.fullmatch(lines[number].rstrip())
            if found is None:
                if lines[number].lstrip().startswith(("```", "~~~")):
                    raise RunError(f"{self.path.name}:{offset + number + 1}: code that is not run")
                prose.append(lines[number])
                number += 1
                continue
            yield from self.prose(prose)
            prose, start = [], number
            number = end_of_block(lines, number, found[1])
            if number == len(lines):
                raise RunError(f"{self.path.name}:{offset + start + 1}: the block has no end")
            body = lines[start + 1 : number]
            yield from self.block(found[2], found[3], body, offset + start + 1)
            number += 1
        yield from self.prose(prose)


def end_of_block(lines: Sequence[str], start: int, fence: str) -> int:
    """The line that ends the block which begins at `start`; the number of lines if none does."""
    rest = (number for number in range(start + 1, len(lines)) if lines[number].rstrip() == fence)
    return next(rest, len(lines))


def slug(heading: str) -> str:
    """A heading as the name of a place: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def cells(name: str, framework: str | None) -> list[Cell]:
    """The cells of a chapter in a framework, or in none if it is the shared one.

    Raises RunError if the text or a listing of it cannot be read.
    """
    path = TEXTS / f"{name}.md"
    first, *rest = _Reader(path, framework).cells(path.read_text(encoding="utf-8").splitlines())
    arguments = f'"{framework}", "{CHAPTERS[name]}"' if framework else ""
    if name in VIRTUAL:
        arguments += f', device_kind="cpu", devices={VIRTUAL[name]}'
    setup = Cell("setup", "code", SETUP.replace("{arguments}", arguments))
    return [first, setup, *rest]
