"""The processes of a run's devices: forked, listened to, and ended together."""

import importlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from typing import Any

from common.backends.devices import Process
from common.base.children import end, end_with, fork
from common.base.endings import GRACE, Ending, how_ended, killed, tell_ending, without_word
from common.base.pulse import ALIVE, BEAT, FROZEN, Pulse, Watch
from frameworks.pytorch import PRELOAD

Worker = Callable[[Process], None]

Outcomes = dict[Any, tuple[int, BaseProcess]]
"""By the pipe that tells how a process ends: which device's it is, and the process."""


def serve(
    parent: int,
    workers: Connection,
    places: Sequence[Process],
    where: tuple[str, int],
    tell: Connection,
) -> None:
    """Forks a process for each device, which all meet there, and tells how they ended."""
    pulse = Pulse(tell)
    for module in PRELOAD:
        importlib.import_module(module)
    worker: Worker = workers.recv()
    pulse.end()  # who forks has one thread alone
    outcomes: Outcomes = {}
    for place in places:
        outcome, of_rank = Pipe(duplex=False)
        process = fork(_process, place, worker, where, of_rank)
        of_rank.close()  # or the next process would keep it open
        outcomes[outcome] = place.rank, process
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


def ending(server: BaseProcess, outcome: Connection, places: Sequence[Process]) -> Ending | None:
    """How a run ended whose processes a server has forked: None if it went well."""
    name = f"the process of devices {places[0].rank} to {places[-1].rank}"
    watch = Watch([server])
    while not watch.silent():
        if not outcome.poll(BEAT):
            continue
        try:
            word = outcome.recv()
        except EOFError:
            server.join()
            return killed(f"{name} {how_ended(server)}")
        if word != ALIVE:
            found: Ending | None = word
            return found
        watch.heard(server)
    return killed(f"{name} {FROZEN}")


def _process(process: Process, worker: Worker, where: tuple[str, int], tell: Connection) -> None:
    """What the process of a device does; it tells how it ended."""
    # It loads PyTorch, which whoever starts the server must not wait for in silence.
    from frameworks.pytorch.hosts import Meeting
    from frameworks.pytorch.processes import run_in_group

    tell_ending(partial(run_in_group, worker, process, Meeting(*where)), tell)


def _failures(outcomes: Outcomes, tell: Connection) -> list[Ending]:
    """What went wrong, in this order; after a failure, the others have GRACE seconds to end."""
    found: list[Ending] = []
    watch, limit = Watch(outcomes), math.inf
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
