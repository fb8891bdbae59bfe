"""The entry point of every chapter: `main` turns what happens into one line and a status."""

import sys
from collections.abc import Callable, Mapping, Sequence
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
    return _run(made.prog, lambda: vars(made.parse_args(given)), given)


def train(framework: str, chapter: str, given: Mapping[str, Any]) -> int:
    """The same for settings by the names of the flags, "_" for "-"."""
    program = f"python -m frameworks.{framework}.{chapter}"
    return _run(program, lambda: all_settings(framework, chapter, given), as_flags(given))


def _run(program: str, settings: Callable[[], Mapping[str, Any]], given: Sequence[str]) -> int:
    def work() -> None:
        asked = settings()
        # Only now, so that --help loads neither NumPy nor pydantic.
        from common.training.run import run

        run(asked, given)

    return status(program, work)
