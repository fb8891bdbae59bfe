"""Processes that another one starts: they end with it, whatever ends it, and leave nothing behind.

There is no server between: such a server's socket is a file, which a signal leaves.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing import Pipe, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess, SpawnProcess
from multiprocessing.process import BaseProcess
from tempfile import TemporaryFile
from typing import IO, Any, Final

from common.base.signals import held_back, leave_to_parent

Started: Final = SpawnProcess if sys.platform == "darwin" else ForkProcess
"""On macOS, Accelerate, Objective-C and what asks for proxies crash or hang in a forked process."""

LOOK: Final = 0.2
"""Seconds between two looks at whether the parent is still there."""


def start(work: Callable[..., object], *arguments: Any) -> BaseProcess:
    """Starts work in a copy of this process, which must have one thread only."""
    process: BaseProcess = Started(target=_work, args=(os.getpid(), work, arguments))
    if not isinstance(process, ForkProcess):
        resource_tracker.ensure_running()  # it would let signals through in between
    with held_back():  # until the process calls `leave_to_parent`
        process.start()
    return process


def _work(parent: int, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    leave_to_parent()
    end_with(parent)
    work(*arguments)


def outcomes(
    work: Callable[..., object], tasks: Iterable[tuple[Any, ...]], at_once: int
) -> Generator[tuple[Any, int, float, str], None, None]:
    """Does each task by `work(*task, output)` in a process of its own, some `at_once`.

    As they end: the task, the exit status, the seconds, and what was written to the output. Tasks
    are taken when they begin. Processes that have not ended are, if it is closed.
    """
    waiting = iter(tasks)
    # By what becomes ready when it ends: the process, its output, the task, and when it began.
    running: dict[Any, tuple[BaseProcess, IO[str], Any, float]] = {}
    try:
        while True:
            for task in islice(waiting, at_once - len(running)):
                printed: IO[str] = TemporaryFile("w+", errors="replace")  # noqa: SIM115
                # A process that is not forked gets a connection, but no bare number.
                output = Connection(os.dup(printed.fileno()), readable=False)
                process = start(work, *task, output)
                running[process.sentinel] = process, printed, task, time.monotonic()
            if not running:
                return
            for sentinel in wait(list(running)):
                process, printed, task, began = running.pop(sentinel)
                process.join()
                code, seconds = process.exitcode or 0, time.monotonic() - began
                with printed:
                    printed.seek(0)
                    yield task, code, seconds, printed.read()
    finally:
        end(process for process, *_ in running.values())


def messages(work: Callable[..., object], *arguments: Any, seconds: float) -> Iterator[Any]:
    """The JSON that `work(tell, *arguments)` tells in a process of its own, which prints nothing.

    Raises TimeoutError after so many seconds. In the end, whatever it has started is ended.
    """
    ours, theirs = Pipe(duplex=False)
    deadline, process = time.monotonic() + seconds, start(_apart, theirs, work, arguments)
    theirs.close()
    try:
        while ours.poll(max(0, deadline - time.monotonic())):
            yield json.loads(ours.recv_bytes())
        raise TimeoutError
    except EOFError:
        return
    finally:
        assert process.pid
        with suppress(ProcessLookupError):  # it has not come to that, or nothing is left
            os.killpg(process.pid, signal.SIGKILL)
        end([process])


def _apart(pipe: Connection, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    work(lambda *message: pipe.send_bytes(json.dumps(message).encode()), *arguments)


def end(processes: Iterable[BaseProcess]) -> None:
    """Ends processes that this one has started; returns once they are gone."""
    for process in processes:
        process.kill()
        process.join()


def end_with_creator() -> None:
    """Ends this process as soon as the one that has created it is gone, by a server or itself."""

    def watch() -> None:
        if creator := parent_process():
            creator.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_with(parent: int) -> None:
    """Ends this process soon after `parent`, which has started it, is gone."""

    def watch() -> None:
        while os.getppid() == parent:  # else the process that takes in orphans
            time.sleep(LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
