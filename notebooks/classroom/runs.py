"""A run in a process for each device, without a record: the notebook gets the outcome."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from common.backends.devices import Process
from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights
from common.data.dataset import Dataset
from common.settings.config import Config
from common.training.loop import Outcome, Training
from notebooks.classroom.live import Lines


@dataclass(frozen=True)
class Rank:
    """The work of each process of a run; rank 0 sends the line of each epoch, then the outcome."""

    config: Config
    data: Dataset
    weights: Weights
    line: Connection

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices."""
        config, first = self.config, process.rank == 0
        chapter = backend(config.framework, config.chapter)
        devices = chapter.devices(process, config.request).local
        report = Lines(self.line.send, quiet=not first)
        outcome = Training(chapter, devices, config, self.data, report).train(self.weights)
        if first:
            self.line.send(outcome)


def in_processes(
    chapter: Chapter,
    config: Config,
    data: Dataset,
    weights: Weights,
    notice: Callable[[str], None],
) -> Outcome:
    """Trains in a process for each device, with a `notice` of each epoch."""
    receiver, line = Pipe(duplex=False)
    with ThreadPoolExecutor(1) as pool, receiver:
        outcome = pool.submit(listen, receiver, notice)
        try:
            rank = Rank(config, data, weights, line)
            chapter.launch(rank, config.request, config.options)
        finally:
            line.close()
        return outcome.result()


def listen(receiver: Connection, notice: Callable[[str], None]) -> Outcome:
    """Hands on each line until the outcome comes. Raises EOFError if none comes."""
    while isinstance(message := receiver.recv(), str):
        with suppress(OSError):  # if nobody read on, the sender would wait
            notice(message)
    outcome: Outcome = message
    return outcome
