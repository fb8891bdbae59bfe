"""Writes the notebooks from the chapters' text and the listings of the sources.

python -m notebooks.build            write notebooks/<framework>/*.ipynb and notebooks/parity.ipynb
python -m notebooks.build --check    exit 1 if text, listing or outputs of one of them are stale

Outputs stay where no code has changed; `nox -s notebooks -- --write` makes new ones.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from common.base.errors import RunError
from common.base.files import write_text
from common.terminal.command import Parser, status
from notebooks.drawing import pictures
from notebooks.text import notebook as files
from notebooks.text.sources import ROOT

FIGURES: Final = {
    ROOT / "docs" / "data-parallelism.svg": lambda: pictures.drawing("data-parallelism"),
    ROOT / "docs" / "pipeline.svg": pictures.planned_pipeline,
}
"""Pictures that are files, because the README shows them."""

REMEDY: Final = "`python -m notebooks.build` writes text, `nox -s notebooks -- --write` outputs"


def all_built() -> list[tuple[Path, files.Notebook]]:
    """All notebooks, made from text and listings, with their paths."""
    return [(files.path_of(*pair), files.notebook(*pair)) for pair in files.NOTEBOOKS]


def build() -> None:
    """Writes all figures and notebooks; a notebook whose code is the same keeps its outputs."""
    for path, draw in FIGURES.items():
        write_text(path, draw())
    for path, nb in all_built():
        if path.exists():
            files.copy_outputs(files.read(path), nb)
        files.write(path, nb)
        outputs = "with outputs" if "executed" in nb.metadata else "WITHOUT outputs"
        print(f"{path.relative_to(ROOT)}: {len(nb.cells)} cells, {outputs}")


def stale() -> Iterator[str]:
    """A line for each notebook or figure that differs from its source."""
    for path, nb in all_built():
        problem = files.difference(files.read(path), nb) if path.exists() else "it is missing"
        if problem:
            yield f"{path.relative_to(ROOT)}: {problem}"
    for path, draw in FIGURES.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != draw():
            yield f"{path.relative_to(ROOT)}: it is another picture"


def check() -> None:
    """Raises RunError with the first stale notebooks and their number."""
    if lines := list(stale()):
        raise RunError(f"{len(lines)} are stale, such as {'; '.join(lines[:4])}: {REMEDY}")
    print("all notebooks are as their text and listings say")


def main(argv: Sequence[str] | None = None) -> int:
    """Builds or checks. Returns 0, 1 (stale, or a text that cannot be read) or 2."""
    parser = Parser("python -m notebooks.build", __doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    flags = parser.parse_args(argv)
    return status(parser.prog, check if flags.check else build)


if __name__ == "__main__":
    raise SystemExit(main())
