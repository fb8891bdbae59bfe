"""A run that a notebook shows: here, or in a process for each device."""

from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from common.backends.devices import DeviceRequest, Process
from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights
from common.data.dataset import Dataset
from common.settings.config import Config
from common.training.loop import Outcome, Training
from common.training.reporter import closing_line, introduction
from notebooks.classroom.live import Forwarder, Live, Notify


@dataclass(frozen=True)
class Work:
    """A run without a record, as data that can be sent to another process; `preset` as asked."""

    config: Config
    preset: str
    data: Dataset
    weights: Weights

    def train(self, chapter: Chapter, devices: Any, names: list[str], notify: Notify) -> Outcome:
        """Trains on these devices, and calls `notify` with each event."""
        config = self.config
        notify("notice", introduction(config, self.preset, names))
        notify("begin", config.epochs or 1)
        training = Training(chapter, devices, config, self.data, Forwarder(notify))
        outcome = training.train(self.weights)
        notify("finish", closing_line(outcome.epochs, names), outcome.losses)
        return outcome


@dataclass(frozen=True)
class Rank:
    """The work of each process of a run; rank 0 sends events and the outcome to the notebook."""

    work: Work
    line: Connection

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices."""
        config = self.work.config
        chapter = backend(config.framework, config.chapter)
        devices = chapter.devices(process, DeviceRequest.of(config.settings()))
        notify = self.send if process.rank == 0 else ignore
        outcome = self.work.train(chapter, devices.local, devices.names, notify)
        if process.rank == 0:
            self.line.send(("outcome", outcome))

    def send(self, name: str, *arguments: Any) -> None:
        """Sends an event to the notebook."""
        self.line.send((name, *arguments))


def ignore(name: str, *arguments: Any) -> None:
    """Does nothing with an event."""


def in_processes(chapter: Chapter, work: Work, live: Live) -> Outcome:
    """Trains in a process for each device, and shows the events of rank 0 here."""
    receiver, line = Pipe(duplex=False)
    outcomes: list[Outcome] = []
    errors: list[Exception] = []

    def listen() -> None:
        with suppress(EOFError):
            while True:
                name, *arguments = receiver.recv()
                try:  # after an error, go on reading: otherwise the sender blocks
                    if name == "outcome":
                        outcomes.extend(arguments)
                    else:
                        live.receive(name, *arguments)
                except Exception as error:
                    errors.append(error)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        request = DeviceRequest.of(work.config.settings())
        chapter.launch(Rank(work, line), request, work.config.options)
    finally:
        line.close()
        listener.join()
        receiver.close()
    if errors:
        raise errors[0]
    return outcomes[0]
