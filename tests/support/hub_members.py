"""Processes of a run as its hub sees them: connections that beat, and say what a test lets them."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from common.base.endings import Ending, to_plain
from common.hosts.hub import Hub
from common.hosts.wire import Message, Wire, listener

BEAT: Final = 0.05
SOON: Final = 10
"""Seconds that nothing takes: a beat, of which 15 may be missing, takes less than 0.1."""

ASKED: Final = {"--steps": "7", "numpy": "2.0"}


class Member:
    """A connection to the hub: it beats, from `hello` on, until it is frozen or closed."""

    def __init__(self, port: int) -> None:
        self.wire = Wire(socket.create_connection(("localhost", port), timeout=SOON))
        self.frozen = threading.Event()
        self.others: list[Message] = []
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def hello(self, rank: int, **changed: Any) -> "Member":
        """Says who it is."""
        hello = {"rank": rank, "host": f"n{rank}", "asked": ASKED}
        self.wire.send(**{**hello, **changed})
        self.thread.start()
        return self

    def _beat(self) -> None:
        while not self.frozen.wait(BEAT):
            self.wire.send(alive=True)

    def say(self, **message: Any) -> None:
        """Says something."""
        self.wire.send(**message)

    def fail(self, ending: Ending) -> None:
        """Says that it has failed."""
        self.say(failure=to_plain(ending))

    def hear(self, what: str) -> Any:
        """What the hub says next of this kind; what comes before it is dropped."""
        limit = time.monotonic() + SOON
        while time.monotonic() < limit:
            for message in self.wire.receive():
                if what in message:
                    return message[what]
            assert not self.wire.closed, f"there comes no more {what}"
        raise AssertionError(f"no {what} has come")

    def is_left(self) -> bool:
        """Whether the hub ends the connection soon."""
        limit = time.monotonic() + SOON
        while not self.wire.closed and time.monotonic() < limit:
            list(self.wire.receive())
        return self.wire.closed

    def freeze(self) -> None:
        """Says nothing any more."""
        self.frozen.set()

    def close(self) -> None:
        """Is gone."""
        self.freeze()
        if self.thread.ident:
            self.thread.join()
        self.wire.close()


class Hall:
    """A hub that serves in a thread, and all who have come to it."""

    def __init__(self, count: int, limit: float = SOON) -> None:
        taking = listener(0)
        self.port: int = taking.getsockname()[1]
        first = {"rank": 0, "host": "n0", "asked": ASKED}
        self.hub = Hub(taking, count, first, limit)
        self.thread = threading.Thread(target=self.hub.run, daemon=True)
        self.thread.start()
        self.members: list[Member] = []

    def member(self) -> Member:
        """Somebody who connects, and says nothing yet."""
        self.members.append(Member(self.port))
        return self.members[-1]

    def come(self, rank: int, **changed: Any) -> Member:
        """Somebody who says who it is."""
        return self.member().hello(rank, **changed)

    def all(self) -> list[Member]:
        """Everyone has come, and been told so."""
        members = [self.come(rank) for rank in range(self.hub.count)]
        for member in members:
            member.hear("everyone")
        return members

    def ends(self) -> bool:
        """Whether the hub ends soon, once all have left it."""
        for member in self.members:
            member.close()
        self.thread.join(SOON)
        for wire in (*self.hub.members.values(), *self.hub.strangers):  # else with its process
            wire.close()
        return not self.thread.is_alive()


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Hall]]:
    """Makes hubs whose pulse is twenty times as fast; each has to have ended in the end."""
    for name in ("common.base.pulse.BEAT", "common.hosts.hub.BEAT"):
        monkeypatch.setattr(name, BEAT)
    monkeypatch.setattr("common.hosts.hub.STRANGER", 0.5)
    made: list[Hall] = []

    def make(count: int = 3, limit: float = SOON, grace: float = 0.6) -> Hall:
        monkeypatch.setattr("common.hosts.hub.GRACE", grace)
        made.append(Hall(count, limit))
        return made[-1]

    yield make
    for each in made:
        with suppress(OSError):
            assert each.ends()
