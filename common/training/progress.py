"""How far a run has come."""

import time
from dataclasses import dataclass, field

from common.base.arrays import Array
from common.records.record import Epoch


@dataclass
class Progress:
    """The loss of every step so far, and of every finished epoch its figures and predictions.

    `seconds` are those of training in the epoch under way, up to the last step in `losses`.
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    predictions: list[Array] = field(default_factory=list)
    seconds: float = 0.0


class Stopwatch:
    """Counts the seconds of training into `progress`, and not those of what is kept of it."""

    def __init__(self, progress: Progress) -> None:
        """It stands still until `start`."""
        self.progress = progress
        self.started = 0.0

    def start(self) -> None:
        """Counts from now on."""
        self.started = time.perf_counter()

    def stop(self) -> None:
        """Counts no longer."""
        self.progress.seconds += time.perf_counter() - self.started
