"""What every command does alike: it parses its flags, and ends with one line and a status."""

import argparse
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from common.base.errors import RequestError, RunError, Terminated
from common.base.signals import interruptible
from common.terminal.streams import open_streams, require_printed
from common.terminal.text import printable


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and exits with status 2."""

    def error(self, message: str) -> NoReturn:
        """Ends the program: `message` says what is wrong."""
        told = f"{self.prog}: error: {message} (--help explains the flags)"
        self.exit(2, f"{printable(told)}\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends the program. Raises RunError if its answer cannot be printed."""
        require_printed()
        super().exit(status, message)


def status(program: str, work: Callable[[], int | None]) -> int:
    """Does the work; the exit status, as above, and one line on standard error if it failed.

    Work that is a whole command returns its own status.
    """
    open_streams()
    try:
        with interruptible(signal.SIGINT):
            found = work()
            require_printed()
    except (RequestError, RunError) as error:
        return _fail(program, str(error), error.status)
    except Terminated as error:
        return _fail(program, f"ended by {error}", 143)
    except KeyboardInterrupt:
        return _fail(program, "interrupted", 130)
    except MemoryError as error:  # its text, where it has one, tells how much was wanted
        reason = f"there is too little memory{f' ({error})' if str(error) else ''}"
        return _fail(program, f"{reason}: free some, or ask for less at a time", 1)
    except Exception as error:  # whatever a framework raises; a run's traceback is in its record
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        return _fail(program, f"{type(error).__name__}: {reason}", 1)
    return found or 0


def _fail(program: str, reason: str, status: int) -> int:
    print(printable(f"{program}: error: {reason}"), file=sys.stderr)  # a name may have any bytes
    return status
