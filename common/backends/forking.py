"""A process for each device of a run: started by a server, listened to, and ended together."""

import importlib
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from multiprocessing.spawn import get_executable
from typing import Any

from common.backends.devices import Process
from common.base.children import end, end_with, start
from common.base.endings import (
    GRACE,
    Ending,
    cause,
    how_ended,
    killed,
    tell_ending,
    without_word,
)
from common.base.errors import RunError
from common.base.pulse import ALIVE, BEAT, FROZEN, Pulse, Watch
from common.base.signals import stoppable, uninterrupted

Work = Callable[[Process], None]

Outcomes = dict[Any, tuple[int, BaseProcess]]
"""By the pipe that tells how a process ends: which device's it is, and the process."""


def in_processes(work: Work, processes: Sequence[Process], preload: Sequence[str]) -> None:
    """Calls `work` in a process of its own for each of `processes`, once modules are loaded.

    Raises RequestError or RunError as the work did, and RunError if a process died; all others are
    ended then.
    """
    outcome, tell = Pipe(duplex=False)
    receive, send = Pipe(duplex=False)
    # They are started by a process that has no thread yet and no GPU, as this one may have.
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(os.getpid(), preload, receive, processes, tell)
    )
    try:
        with uninterrupted():
            server.start()
    except OSError as error:  # it may have ended already
        why = trouble_at_start() or f": {error.strerror}"
        raise RunError(f"{name_of(processes)} was ended as it started{why}") from None
    try:
        tell.close()
        receive.close()
        # A run's data does not fit into a pipe: what sends it waits for the one that reads.
        threading.Thread(target=hand_over, args=(send, work), daemon=True).start()
        with stoppable(lambda _: ask_to_stop([server])) as stop:
            failure = ending(server, outcome, processes)
    finally:
        end([server])
    if failure is not None:
        raise cause(failure, stop) from RuntimeError(failure.details)


def hand_over(send: Connection, work: Work) -> None:
    """Sends the work, as long as the other end reads."""
    with suppress(OSError):
        send.send(work)


def serve(
    parent: int,
    preload: Sequence[str],
    works: Connection,
    processes: Sequence[Process],
    tell: Connection,
) -> None:
    """Starts a process for each of `processes`, and tells how they ended."""
    pulse = Pulse(tell)
    for module in preload:
        importlib.import_module(module)
    work: Work = works.recv()  # only now: to read it loads the framework, in silence
    if sys.platform != "darwin":
        pulse.end()  # a process that forks has one thread alone
    outcomes: Outcomes = {}
    for each in processes:
        outcome, of_rank = Pipe(duplex=False)
        started = start(tell_ending, partial(work, each), of_rank)
        of_rank.close()  # or the next process would keep it open
        outcomes[outcome] = each.rank, started
    pulse.end()
    end_with(parent)
    everyone = [started for _, started in outcomes.values()]
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: ask_to_stop(everyone))
    failures = _failures(outcomes, tell)
    end(everyone)
    tell.send(min(failures, key=lambda failure: failure.order, default=None))


def ask_to_stop(processes: Iterable[BaseProcess]) -> None:
    """Asks processes to stop in order: all of them after the same step."""
    for process in processes:
        if process.pid and process.is_alive():
            os.kill(process.pid, signal.SIGUSR1)


def ending(server: BaseProcess, outcome: Connection, processes: Sequence[Process]) -> Ending | None:
    """How a run ended whose processes a server has started: None if it went well."""
    name = name_of(processes)
    watch = Watch([server])
    while not watch.silent():
        if not outcome.poll(BEAT):
            continue
        try:
            word = outcome.recv()
        except EOFError:
            server.join()
            return killed(f"{name} {how_ended(server)}{trouble_at_start()}")
        if word != ALIVE:
            found: Ending | None = word
            return found
        watch.heard(server)
    return killed(f"{name} {FROZEN}")


def name_of(processes: Sequence[Process]) -> str:
    """What the server of these processes is called in messages."""
    return f"the process of devices {processes[0].rank} to {processes[-1].rank}"


def trouble_at_start() -> str:
    """Why this Python cannot start another one, for the end of a line; empty if it can."""
    command = [os.fsdecode(get_executable()), "-c", ""]
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, errors="backslashreplace", check=False
        )
    except OSError as error:
        return f": {command[0]} cannot be started: {error.strerror}"
    said = tried.stderr.strip().splitlines() or ["it says nothing"]
    return f": {command[0]} cannot be started: {said[-1]}" if tried.returncode else ""


def _failures(outcomes: Outcomes, tell: Connection) -> list[Ending]:
    """What went wrong, in this order; after a failure, the others have GRACE seconds to end."""
    found: list[Ending] = []
    # On macOS, one that is heard first has loaded the framework, which may take long.
    watch, limit = Watch([] if sys.platform == "darwin" else outcomes), math.inf
    while outcomes and time.monotonic() < limit:
        tell.send(ALIVE)
        for outcome in wait(list(outcomes), BEAT):
            rank, process = outcomes[outcome]
            word = _word(outcome, f"the process of device {rank}", process)
            if word == ALIVE:
                watch.heard(outcome)
                continue
            watch.left(outcome)
            del outcomes[outcome]
            found += [word] if word else []
        for outcome in watch.silent():
            watch.left(outcome)
            rank, _ = outcomes.pop(outcome)
            found.append(killed(f"the process of device {rank} {FROZEN}"))
        if found:
            limit = min(limit, time.monotonic() + GRACE)
    return found


def _word(outcome: Any, who: str, process: BaseProcess) -> Any:
    """What a process says; if it will say nothing more, how it ended."""
    try:
        return outcome.recv()
    except EOFError:
        return without_word(who, process)
