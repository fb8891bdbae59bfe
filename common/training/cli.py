"""The entry point of every chapter."""

import sys
from collections.abc import Sequence

from common.settings.arguments import parser
from common.terminal.command import status


def main(framework: str, chapter: str, argv: Sequence[str] | None = None) -> int:
    """Runs one chapter in one framework. Returns the exit status."""
    command, flags = parser(framework, chapter), sys.argv[1:] if argv is None else argv

    def work() -> None:
        settings = vars(command.parse_args(flags))
        # Only now, so that --help loads neither NumPy nor pydantic.
        from common.training.run import run

        run(settings, flags)

    return status(command.prog, work)
