"""Writes the notebooks from the chapters' text and the listings of the sources.

python -m notebooks.build            write notebooks/<framework>/*.ipynb and notebooks/parity.ipynb
python -m notebooks.build --check    exit 1 if text, listing or outputs of one of them are stale

Outputs stay where no code has changed; `nox -s notebooks -- --write` makes new ones.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.base.files import write_text
from common.terminal.command import Parser, status
from notebooks.drawing import pictures
from notebooks.text import notebook as files
from notebooks.text.sources import ROOT

FIGURES: Final = {
    ROOT / "docs" / "data-parallelism.svg": pictures.data_parallelism,
    ROOT / "docs" / "pipeline.svg": pictures.planned_pipeline,
}
"""Pictures that are files, because the README shows them."""

SHOWN: Final = 4
"""Stale notebooks that are named: one for each framework."""

REMEDY: Final = "`python -m notebooks.build` writes text, `nox -s notebooks -- --write` outputs"


def everything() -> list[tuple[Path, files.Notebook]]:
    """Every notebook as its text and listings say, by its file."""
    return [
        (files.path_of(*each), files.notebook(*each))
        for framework in (*FRAMEWORKS, None)
        for each in files.all_notebooks(framework)
    ]


def build() -> None:
    """Writes all figures and notebooks; a notebook whose code is the same keeps its outputs."""
    for path, draw in FIGURES.items():
        write_text(path, draw())
    for path, made in everything():
        if path.exists():
            files.with_outputs(made, files.read(path))
        files.write(path, made)
        outputs = "with outputs" if "executed" in made.metadata else "WITHOUT outputs"
        print(f"{path.relative_to(ROOT)}: {len(made.cells)} cells, {outputs}")


def stale() -> Iterator[str]:
    """A line for each notebook that is not what text and listings say, and for each old figure."""
    for path, made in everything():
        trouble = files.difference(files.read(path), made) if path.exists() else "it is missing"
        if trouble:
            yield f"{path.relative_to(ROOT)}: {trouble}"
    for path, draw in FIGURES.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != draw():
            yield f"{path.relative_to(ROOT)}: it is another picture"


def check() -> None:
    """Raises RunError that names every stale notebook."""
    if found := list(stale()):
        more = [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
        raise RunError(f"{'; '.join([*found[:SHOWN], *more])}: {REMEDY}")
    print("all notebooks are as their text and listings say")


def main(argv: Sequence[str] | None = None) -> int:
    """Builds or checks. Returns 0, 1 (stale, or a text that cannot be read) or 2."""
    made = Parser("python -m notebooks.build", __doc__)
    made.add_argument("--check", action="store_true", help="write nothing, say what is stale")
    flags = made.parse_args(argv)
    return status(made.prog, check if flags.check else build)


if __name__ == "__main__":
    raise SystemExit(main())
