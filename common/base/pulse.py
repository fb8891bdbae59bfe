"""How a process tells another one that it is there: one that is frozen neither speaks nor ends.

A pipe carries `ALIVE` once a second, and in the end a last word.
"""

import threading
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Final, Generic, TypeVar

Who = TypeVar("Who")

ALIVE: Final = "alive"
"""What is said meanwhile."""

BEAT: Final = 1.0
"""Seconds between two words."""

LIMIT: Final = 15
"""As many words that do not come mean that they will not come."""

FROZEN: Final = f"has not answered for {LIMIT} seconds: it is frozen"
"""What is said of a process then."""


class Pulse:
    """Says through a pipe that this process is alive, by a thread of its own, until `end`."""

    def __init__(self, pipe: Connection) -> None:
        """Starts the thread."""
        self.pipe, self.over = pipe, threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """Returns once the thread has ended: the pipe is free, and the process may fork."""
        self.over.set()
        self.thread.join()

    def _beat(self) -> None:
        while not self.over.wait(BEAT):
            try:
                self.pipe.send(ALIVE)
            except OSError:  # no process listens any more
                return


class Watch(Generic[Who]):
    """Counts for how long each of several processes has said nothing.

    The time in which the one that watches is frozen itself, as by Ctrl-Z, does not count.
    """

    def __init__(self, watched: Iterable[Who]) -> None:
        """All of them have just been heard."""
        self.missed = dict.fromkeys(watched, 0)
        self.counted = time.monotonic()

    def heard(self, who: Who) -> None:
        """One of them has said something."""
        self.missed[who] = 0

    def left(self, who: Who) -> None:
        """One of them has said its last word."""
        self.missed.pop(who, None)

    def silent(self) -> list[Who]:
        """Those that have not been heard for too long; to be asked once a BEAT."""
        now = time.monotonic()
        if now - self.counted >= BEAT:
            # Else what is asked a little late each time would count too little in the end.
            self.counted = now if now - self.counted >= 2 * BEAT else self.counted + BEAT
            self.missed = {who: times + 1 for who, times in self.missed.items()}
        return [who for who, times in self.missed.items() if times >= LIMIT]
