"""How a process that another one has started ends, and what it says of that."""

import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from signal import Signals
from typing import Any, Final, NamedTuple

from common.base.errors import (
    BusyError,
    RequestError,
    RunError,
    StoppedError,
    UnforeseenError,
)
from common.base.signals import Stop

CRASHES: Final = {Signals[f"SIG{name}"] for name in ("ABRT", "BUS", "FPE", "ILL", "SEGV")}
"""The signals by which the system ends a process for what it has done itself."""

KINDS: Final = {
    kind.__name__: kind
    for kind in (RequestError, BusyError, RunError, UnforeseenError, StoppedError)
}
"""The errors that an ending may have, by name."""

SAID: Final = 0
KILLED: Final = 1
STOPPED: Final = 2
REST: Final = 3


class Ending(NamedTuple):
    """Why a process ended; of several failures, the first one of the lowest `order` is the cause.

    The order: what a worker said, then a process that was killed or is frozen, then one that has
    stopped when asked to, then the rest. The death of another process may have caused the rest.
    """

    order: int
    error: RequestError | RunError
    details: str


def ending_of(work: Callable[[], object]) -> Ending | None:
    """How some work ended: None if it went well."""
    try:
        work()
    except StoppedError as error:
        return Ending(STOPPED, error, traceback.format_exc())
    except (RequestError, RunError) as error:
        return Ending(SAID, error, traceback.format_exc())
    except Exception as error:
        # Not the last line of the traceback: a framework may add notes to an exception.
        line = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
        return Ending(REST, UnforeseenError(f"a process failed: {line}"), traceback.format_exc())
    return None


def killed(message: str, kind: type[RunError] = RunError) -> Ending:
    """The ending of a process that cannot tell of it."""
    return Ending(KILLED, kind(message), "it did not say")


def without_word(name: str, process: BaseProcess) -> Ending:
    """The ending of a process that has said nothing of it, by its exit status."""
    status = process.exitcode
    if status is None:
        return killed(f"{name} says nothing more".strip())
    how = f"by {Signals(-status).name}" if status < 0 else f"with status {status}"
    kind = UnforeseenError if -status in CRASHES else RunError
    return killed(f"{name} was ended {how}".strip(), kind)


def cause(failure: Ending, stop: Stop) -> RequestError | RunError:
    """What to raise: processes that were asked to stop do not know by what signal."""
    if stop.asked and failure.order == KILLED:
        return StoppedError("stopped, and kept nothing new", status=stop.status)
    if stop.asked and isinstance(failure.error, StoppedError):
        failure.error.status = stop.status
    return failure.error


def to_plain(ending: Ending | None, prefix: str = "") -> list[Any] | None:
    """An ending as JSON, for other processes; the message gets a prefix."""
    if ending is None:
        return None
    order, error, details = ending
    return [order, type(error).__name__, f"{prefix}{error}", vars(error), details]


def from_plain(plain: list[Any] | None) -> Ending | None:
    """The inverse of `to_plain`."""
    if plain is None:
        return None
    order, kind, message, about, details = plain
    error = KINDS[kind](message)
    vars(error).update(about)
    return Ending(order, error, details)
