"""The entry point of every chapter: `main` turns what happens into one line and a status."""

import signal
import sys
from collections.abc import Callable, Sequence

from common.arguments import parser
from common.errors import RequestError, RunError, Terminated
from common.signals import interruptible
from common.streams import open_streams, require_printed


def main(framework: str, chapter: str, argv: Sequence[str] | None = None) -> int:
    """Runs one chapter in one framework as the command line says.

    Returns the exit status: 0 done, 1 it failed on its way, 2 the request was wrong, 130
    interrupted, 143 terminated.
    """
    made = parser(framework, chapter)
    given = list(sys.argv[1:] if argv is None else argv)

    def work() -> None:
        flags = made.parse_args(given)
        from common.run import run  # only now, so that --help loads neither NumPy nor pydantic

        run(framework, chapter, flags, given)

    return status(made.prog, work)


def status(program: str, work: Callable[[], int | None]) -> int:
    """Does the work; the exit status, as above, and one line on standard error if it failed.

    Work that is a whole command returns its own status.
    """
    open_streams()
    try:
        with interruptible(signal.SIGINT):
            found = work()
            require_printed()
    except RequestError as error:
        return _fail(program, str(error), 2)
    except RunError as error:
        return _fail(program, str(error), 1)
    except Terminated:
        return _fail(program, "ended by SIGTERM", 143)
    except KeyboardInterrupt:
        return _fail(program, "interrupted", 130)
    except Exception as error:  # whatever a framework raises; a run's traceback is in its record
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        return _fail(program, f"{type(error).__name__}: {reason}", 1)
    return found or 0


def _fail(program: str, reason: str, status: int) -> int:
    print(f"{program}: error: {reason}", file=sys.stderr)
    return status
