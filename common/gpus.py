"""Tells what `nox -s gpu` has shown of each framework, from what it leaves in a folder.

python -m common.gpus results/on-gpus

With --write, docs/gpu.json and the table in README and docs/gpu.md say it, too, in place of what
they said of the same frameworks. Without a folder, the table is made of docs/gpu.json alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from common.base.files import write_text
from common.records.store import read_json
from common.report.gpu_session import Summary, summary
from common.terminal.command import Parser, status
from common.terminal.tables import between

KEPT: Final = Path("docs/gpu.json")
PAGES: Final = (Path("README.md"), Path("docs/gpu.md"))
BEGIN: Final = "<!-- GPUs: `python -m common.gpus` writes what follows -->"
END: Final = "<!-- GPUs end -->"

NOTHING: Final = Summary(frameworks={})


def kept() -> Summary:
    """What docs/gpu.json has; nothing, if there is none. Raises RunError."""
    if not KEPT.exists():
        return NOTHING
    return read_json(Summary, KEPT, "a summary of runs on GPUs")


def tell(folder: Path | None, write: bool) -> None:
    """Prints the table and writes it. Raises RunError."""
    found = summary(folder) if folder else NOTHING
    if not folder or write:
        earlier = kept().frameworks
        new = {
            name: each
            for name, each in found.frameworks.items()
            if each.was_run() or name not in earlier
        }
        found = Summary(frameworks=earlier | new)
    print(found.table())
    if write:
        texts = (page.read_text(encoding="utf-8") for page in PAGES)
        written = [between(text, BEGIN, END, found.table()) for text in texts]
        if found.frameworks:
            write_text(KEPT, found.model_dump_json(indent=2) + "\n")
        for page, text in zip(PAGES, written, strict=True):
            write_text(page, text)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0, 1 (a file that cannot be read) or 2."""
    made = Parser(
        prog="python -m common.gpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="what `nox -s gpu` left")
    made.add_argument("--write", action="store_true", help="write docs/gpu.json and the pages")
    flags = made.parse_args(argv)
    tell(flags.folder, flags.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(status("python -m common.gpus", main))
