"""Plants bugs that people have met, one by one, and shows which check of the comparison sees each.

python -m planted --list
python -m planted "mean of shard means" --framework jax
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.files import write_text
from common.terminal.command import Parser, status
from planted.bugs import BUGS

ANSWERS: Final = Path("results/planted")
"""Where the answers of all bugs go."""


def parser() -> Parser:
    command = Parser("python -m planted", __doc__)
    add = command.add_argument
    add("names", nargs="*", metavar="NAME", help="these bugs (all)")
    framework = "plant them in this one (compare the table of all with docs/planted.md)"
    add("--framework", choices=FRAMEWORKS, help=framework)
    add("--list", action="store_true", help="print what people did, and where that is told")
    add("--write", action="store_true", help="write the table to docs/planted.md")
    return command


def run(flags: argparse.Namespace) -> int:
    """Does what the flags say. Returns 0, or 1 if the page has another table."""
    from planted import page

    if unknown := [name for name in flags.names if name not in BUGS]:
        raise RequestError(f"there is no bug {unknown[0]!r}: --list names all")
    if flags.list:
        print("\n".join(map(page.summary, BUGS.values())))
        return 0
    if flags.framework is None:
        return page.compare(ANSWERS, write=flags.write)
    from planted.run import answers

    shown = []
    for answer in answers(flags.framework, flags.names or list(BUGS)):
        print(page.lines(answer), flush=True)
        shown.append(answer)
    if not flags.names:
        ANSWERS.mkdir(parents=True, exist_ok=True)
        file = ANSWERS / f"{flags.framework}.json"
        write_text(file, page.ANSWERS.dump_json(shown, indent=1).decode() + "\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Plants what the flags ask for. Returns 0, 1 if something differs, 2, 130 or 143."""
    command = parser()
    return status(command.prog, lambda: run(command.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
