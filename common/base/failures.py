"""Why a process failed, as JSON that processes send each other."""

import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from signal import Signals
from typing import Any, Final, NamedTuple

from common.base.errors import BusyError, RequestError, RunError, StoppedError, UnforeseenError
from common.base.signals import Stop

CRASHES: Final = {Signals[f"SIG{name}"] for name in ("ABRT", "BUS", "FPE", "ILL", "SEGV")}
"""The signals by which the system ends a process for what it has done itself."""

ERRORS: Final = (RequestError, BusyError, RunError, UnforeseenError, StoppedError)
"""The errors that processes tell each other of, by their names."""

SAID, KILLED, STOPPED, REST = range(4)


class Failure(NamedTuple):
    """Why a process failed; of several failures, the first one of the lowest `order` is the cause.

    The order: what a worker said, then a process that was killed or is frozen, then one that has
    stopped when asked to, then the rest. The death of another process may have caused the rest.
    """

    order: int
    kind: str
    message: str
    about: dict[str, Any]
    details: str

    def error(self) -> RequestError | RunError:
        """The error that ended it."""
        (kind,) = (error for error in ERRORS if error.__name__ == self.kind)
        error = kind(self.message)
        vars(error).update(self.about)
        return error


def failure_of(work: Callable[[], object]) -> Failure | None:
    """Does some work; why it failed, or None."""
    try:
        work()
    except (RequestError, RunError) as error:
        order = STOPPED if isinstance(error, StoppedError) else SAID
        return said(error, order, traceback.format_exc())
    except Exception as error:
        # Not the last line of the traceback: a framework may add notes to an exception.
        line = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
        unforeseen = UnforeseenError(f"a process failed: {line}")
        return said(unforeseen, REST, traceback.format_exc())
    return None


def said(error: RequestError | RunError, order: int = SAID, details: str = "") -> Failure:
    """The failure of a process that has raised an error."""
    return Failure(order, type(error).__name__, str(error), vars(error), details)


def killed(message: str) -> Failure:
    """The failure of a process that cannot tell of it."""
    return said(RunError(message), KILLED, "it did not say")


def killed_with(name: str, process: BaseProcess) -> Failure:
    """The failure of a process that did not tell of it, by its exit status."""
    status = process.exitcode
    if status is None:
        return killed(f"{name} says nothing more")
    how = f"by {Signals(-status).name}" if status < 0 else f"with status {status}"
    kind = UnforeseenError if -status in CRASHES else RunError
    return said(kind(f"{name} was ended {how}"), KILLED, "it did not say")


def raise_failure(failure: Failure | None, stop: Stop) -> None:
    """Raises the error of a failure; processes that were asked to stop do not know the signal."""
    if failure is None:
        return
    error = failure.error()
    if stop.asked and isinstance(error, StoppedError):
        error.status = stop.status
    raise error from RuntimeError(failure.details)
