"""The entry point of every chapter: `main` turns what happens into one line and a status."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from common.settings.arguments import all_settings, as_flags, parser
from common.terminal.command import status


def main(framework: str, chapter: str, argv: Sequence[str] | None = None) -> int:
    """Runs one chapter in one framework as the command line says.

    Returns the exit status: 0 done, 1 it failed on its way, 2 the request was wrong, 130
    interrupted, 143 terminated.
    """
    made = parser(framework, chapter)
    given = list(sys.argv[1:] if argv is None else argv)

    def work() -> None:
        flags = made.parse_args(given)
        # Only now, so that --help loads neither NumPy nor pydantic.
        from common.training.run import run

        run(vars(flags), given)

    return status(made.prog, work)


def train(framework: str, chapter: str, given: Mapping[str, Any]) -> int:
    """The same for settings by the names of the flags, "_" for "-"."""

    def work() -> None:
        from common.training.run import run

        run(all_settings(framework, chapter, given), as_flags(given))

    return status(f"python -m frameworks.{framework}.{chapter}", work)
