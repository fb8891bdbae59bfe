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
from common.models.initial import initial_weights
from common.settings.config import Config
from common.training.loop import Outcome, Training
from common.training.reporter import closing_line, introduction
from notebooks.classroom.live import Live, Teller, Tells


@dataclass(frozen=True)
class Work:
    """A run without a record: plain data, which can be sent to another process.

    `preset` is the one that was asked for.
    """

    config: Config
    preset: str
    data: Dataset
    weights: Weights | None = None

    def train(self, chapter: Chapter, devices: Any, names: list[str], tell: Tells) -> Outcome:
        """Trains on these devices, and tells what happens."""
        config = self.config
        tell("notice", introduction(config, self.preset, names))
        tell("begin", config.epochs or 1)
        weights = self.weights or initial_weights(config.shapes(), config.seed, config.dtype)
        outcome = Training(chapter, devices, config, self.data, Teller(tell)).train(weights)
        tell("finish", closing_line(outcome.epochs, names), outcome.losses)
        return outcome


@dataclass(frozen=True)
class Member:
    """What each process of a run does; the first one tells, and sends what came of it."""

    work: Work
    line: Connection

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices."""
        config = self.work.config
        chapter = backend(config.framework, config.chapter)
        devices = chapter.devices(process, DeviceRequest.of(config.settings()))
        first = process.rank == 0
        tell = self.tell if first else silent
        outcome = self.work.train(chapter, devices.local, devices.names, tell)
        if first:
            self.line.send(("outcome", outcome))

    def tell(self, name: str, *arguments: Any) -> None:
        """Sends what happens to the notebook."""
        self.line.send((name, *arguments))


def silent(name: str, *arguments: Any) -> None:
    """Tells nothing."""


def in_processes(chapter: Chapter, work: Work, live: Live) -> Outcome:
    """Trains in a process for each device, and shows here what the first one tells."""
    heard, line = Pipe(duplex=False)
    outcomes: list[Outcome] = []
    broken: list[Exception] = []

    def listen() -> None:
        with suppress(EOFError):
            while True:
                name, *arguments = heard.recv()
                try:  # whatever happens here, the others must not wait for someone to listen
                    outcomes.extend(arguments) if name == "outcome" else live.hear(name, *arguments)
                except Exception as error:
                    broken.append(error)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        asked = DeviceRequest.of(work.config.settings())
        chapter.launch(Member(work, line), asked, work.config.options)
    finally:
        line.close()
        listener.join()
        heard.close()
    if broken:
        raise broken[0]
    return outcomes[0]
