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


def built() -> Iterator[tuple[Path, str, bool]]:
    """Each figure and notebook: its path, its text, and whether its outputs are of its code."""
    for path, draw in FIGURES.items():
        yield path, draw(), True
    for pair in files.NOTEBOOKS:
        path = files.path_of(*pair)
        nb = files.with_outputs(*pair, path)
        yield path, files.text_of(nb), files.is_run(nb)


def build() -> None:
    """Writes all figures and notebooks; a notebook whose code is the same keeps its outputs."""
    for path, text, complete in built():
        write_text(path, text)
        if not complete:
            print(f"{path.relative_to(ROOT)} has to be run")


def stale() -> Iterator[str]:
    """The paths of notebooks and figures that differ from their sources, or have to be run."""
    for path, text, complete in built():
        if not complete or not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield str(path.relative_to(ROOT))


def check() -> None:
    """Raises RunError with the first stale notebooks and their number."""
    if paths := list(stale()):
        remedy = "`python -m notebooks.build` writes text, `nox -s notebooks -- --write` outputs"
        raise RunError(f"{len(paths)} are stale, such as {', '.join(paths[:4])}: {remedy}")
    print("all notebooks are as their text and listings say")


def main(argv: Sequence[str] | None = None) -> int:
    """Builds or checks. Returns 0, 1 (stale, or a text that cannot be read) or 2."""
    parser = Parser("python -m notebooks.build", __doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    flags = parser.parse_args(argv)
    return status(parser.prog, check if flags.check else build)


if __name__ == "__main__":
    raise SystemExit(main())
