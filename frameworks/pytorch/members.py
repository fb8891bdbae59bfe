"""The processes of a run's devices: forked, listened to, and ended together."""

import importlib
import math
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

from common.backends.devices import Process
from common.base.children import end, end_with, fork
from common.base.errors import RequestError, RunError
from common.base.pulse import ALIVE, BEAT, FROZEN, Pulse, Watch
from frameworks.pytorch import PRELOAD

Worker = Callable[[Process], None]

Outcomes = dict[Any, tuple[int, BaseProcess]]
"""By the pipe that tells how a process ends: which device's it is, and the process."""

GRACE: Final = 5
"""Seconds that the others have to end by themselves once a process has failed."""

KILLED: Final = 1
"""The order of an ending that nobody tells of: a process was killed, or is frozen."""


class Ending(NamedTuple):
    """Why a run ended; of several failures, the first one of the lowest `order` is the cause.

    The order: what a worker said, then who was killed, then the rest. The death of another process
    may have caused the rest.
    """

    order: int
    error: Exception
    details: str


def serve(parent: int, workers: Connection, count: int, port: int, tell: Connection) -> None:
    """Forks a process for each device, which meet at `port`, and tells how they ended."""
    pulse = Pulse(tell)
    for module in PRELOAD:
        importlib.import_module(module)
    worker: Worker = workers.recv()
    pulse.end()  # who forks has one thread alone
    outcomes: Outcomes = {}
    for rank in range(count):
        outcome, of_rank = Pipe(duplex=False)
        process = fork(_process, Process(rank, count, rank, count), worker, port, of_rank)
        of_rank.close()  # or the next process would keep it open
        outcomes[outcome] = rank, process
    end_with(parent)
    processes = [process for _, process in outcomes.values()]
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: ask_to_stop(processes))
    failures = _failures(outcomes, tell)
    end(processes)
    tell.send(min(failures, key=lambda failure: failure.order, default=None))


def ask_to_stop(processes: Iterable[BaseProcess]) -> None:
    """Asks processes to stop in order: all of them after the same step."""
    for process in processes:
        if process.pid and process.is_alive():
            os.kill(process.pid, signal.SIGUSR1)


def ending(server: BaseProcess, outcome: Connection, count: int) -> Ending | None:
    """How a run ended whose processes a server has forked: None if it went well."""
    name, watch = f"the process of devices 0 to {count - 1}", Watch([server])
    while not watch.silent():
        if not outcome.poll(BEAT):
            continue
        try:
            word = outcome.recv()
        except EOFError:
            server.join()
            return _killed(f"{name} {_end(server)}")
        if word != ALIVE:
            found: Ending | None = word
            return found
        watch.heard(server)
    return _killed(f"{name} {FROZEN}")


def _process(process: Process, worker: Worker, port: int, tell: Connection) -> None:
    """What the process of a device does; it tells how it ended."""
    # It loads PyTorch, which whoever starts the server must not wait for in silence.
    from frameworks.pytorch.processes import join_group

    failure, pulse = None, Pulse(tell)
    try:
        join_group(worker, process, port)
    except (RequestError, RunError) as error:
        failure = Ending(0, error, traceback.format_exc())
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        failure = Ending(2, RunError(f"a process failed: {last}"), traceback.format_exc())
    pulse.end()
    tell.send(failure)


def _failures(outcomes: Outcomes, tell: Connection) -> list[Ending]:
    """What went wrong, in this order; after a failure, the others have GRACE seconds to end."""
    found: list[Ending] = []
    watch, limit = Watch(outcomes), math.inf
    while outcomes and time.monotonic() < limit:
        tell.send(ALIVE)
        for outcome in wait(list(outcomes), BEAT):
            if (word := _word(outcome)) == ALIVE:
                watch.heard(outcome)
                continue
            watch.left(outcome)
            failure = _failure(word, *outcomes.pop(outcome))
            found += [failure] if failure else []
        for outcome in watch.silent():
            watch.left(outcome)
            rank, _ = outcomes.pop(outcome)
            found.append(_killed(f"the process of device {rank} {FROZEN}"))
        if found:
            limit = min(limit, time.monotonic() + GRACE)
    return found


def _word(outcome: Any) -> Any:
    """What a process says; None if it will say nothing more."""
    with suppress(EOFError):
        return outcome.recv()


def _failure(word: Ending | None, rank: int, process: BaseProcess) -> Ending | None:
    """What went wrong in the process of a device, by its last word or how it ended."""
    process.join(GRACE)
    if word or not process.exitcode:
        return word
    return _killed(f"the process of device {rank} {_end(process)}")


def _killed(message: str) -> Ending:
    return Ending(KILLED, RunError(message), "it did not say")


def _end(process: BaseProcess) -> str:
    status = process.exitcode or 0
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"was ended {how}"
