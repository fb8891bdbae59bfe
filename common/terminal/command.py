"""What every command does alike: it parses its flags, and ends with one line and a status."""

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from common.base.errors import RequestError, RunError, Terminated
from common.base.signals import interruptible
from common.terminal.streams import open_streams
from common.terminal.text import gist, printable


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and exits with status 2."""

    def __init__(self, program: str, description: str | None, **more: Any) -> None:
        """The description keeps its lines, and no flag can be shortened."""
        super().__init__(program, description=description, allow_abbrev=False, **more)
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        self._negative_number_matcher = re.compile(r"-\.?\d")  # of a value as -7e9, too

    def error(self, message: str) -> NoReturn:
        line = f"{self.prog}: error: {message} (--help explains the flags)"
        self.exit(2, f"{printable(line, len(line))}\n")


def status(program: str, work: Callable[[], int | None]) -> int:
    """Does the work; the exit status, and one line on standard error if it failed."""
    open_streams()
    try:
        with interruptible():
            return work() or 0
    except (RequestError, RunError) as error:
        reason, code = str(error), error.status
    except Terminated as error:
        reason, code = f"ended by {error}", 143
    except KeyboardInterrupt:
        reason, code = "interrupted", 130
    except Exception as error:  # whatever a framework raises; a run's traceback is in its record
        reason, code = f"{type(error).__name__}: {gist(str(error))}", 1
    line = f"{program}: error: {reason}"
    print(printable(line, len(line)), file=sys.stderr)  # a name in it may have any characters
    return code
