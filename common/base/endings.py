"""How a process that another one has started ends, and what it tells of that."""

import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from signal import Signals
from typing import Any, Final, NamedTuple

from common.base.errors import RequestError, RunError, StoppedError, UnforeseenError
from common.base.pulse import Pulse
from common.base.signals import Stop

GRACE: Final = 5
"""Seconds that the others have to end by themselves once a process has failed."""

CRASHES: Final = {Signals[f"SIG{name}"] for name in ("ABRT", "BUS", "FPE", "ILL", "SEGV")}
"""The signals by which the system ends a process for what it has done itself."""

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


def tell_ending(work: Callable[[], object], tell: Connection) -> None:
    """Does the work of a process, and tells meanwhile that it lives, in the end how it ended."""
    pulse = Pulse(tell)
    failure = ending_of(work)
    pulse.end()
    with suppress(OSError):  # no process listens any more
        tell.send(failure)


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


def without_word(who: str, process: BaseProcess) -> Ending:
    """The ending of a process that will say nothing more, with a name for it."""
    process.join(GRACE)  # it may not come to its end by itself
    how = "says nothing more" if process.exitcode is None else how_ended(process)
    crashed = -(process.exitcode or 0) in CRASHES
    error = (UnforeseenError if crashed else RunError)(f"{who} {how}".strip())
    return Ending(KILLED, error, "it did not say")


def killed(message: str) -> Ending:
    """The ending of a process that cannot tell of it."""
    return Ending(KILLED, RunError(message), "it did not say")


def how_ended(process: BaseProcess) -> str:
    """By what a process was ended, in words."""
    status = process.exitcode or 0
    how = f"by {Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"was ended {how}"


def cause(failure: Ending, stop: Stop) -> RequestError | RunError:
    """What to raise: processes that were asked to stop do not know by what signal."""
    if stop.asked and failure.order == KILLED:
        return StoppedError("stopped, and kept nothing new", status=stop.status)
    if stop.asked and isinstance(failure.error, StoppedError):
        failure.error.status = stop.status
    return failure.error


def to_plain(ending: Ending) -> dict[str, Any]:
    """An ending as JSON, for other hosts."""
    error = ending.error
    told = {"kind": type(error).__name__, "message": str(error), "about": vars(error)}
    return {**told, "status": error.status, "order": ending.order, "details": ending.details}


def from_plain(told: dict[str, Any], prefix: str = "") -> Ending:
    """The inverse of `to_plain`; the message gets a prefix."""
    kinds = {each.__name__: each for each in (RunError, UnforeseenError, StoppedError)}
    error = kinds.get(told["kind"], RequestError)(f"{prefix}{told['message']}")
    vars(error).update(told["about"])
    return Ending(told["order"], error, told["details"])
