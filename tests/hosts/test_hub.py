"""The hub hands on what a run's processes give, and tells all how it ended.

A stranger is told why it does not belong to the run, or is not heard at all, and does no harm.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from together import wait_until

from common.base.endings import KILLED, REST, SAID, STOPPED, Ending, to_plain
from common.base.errors import RequestError, RunError, StoppedError
from common.hosts.hub import Hub
from common.hosts.wire import SILENT, Wire, listener

BEAT: Final = 0.05
SOON: Final = 10
"""Seconds that nothing takes: a beat, of which 15 may be missing, takes less than 0.1."""

ASKED: Final = {"--steps": "7", "numpy": "2.0"}


class Member:
    """A connection to the hub: it beats, from `hello` on, until it is frozen or closed."""

    def __init__(self, port: int) -> None:
        self.wire = Wire(socket.create_connection(("localhost", port), timeout=SOON))
        self.frozen = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.say = self.wire.send

    def hello(self, rank: int, asked: object = ASKED) -> "Member":
        self.say(rank=rank, host=f"n{rank}", asked=asked)
        self.thread.start()
        return self

    def _beat(self) -> None:
        while not self.frozen.wait(BEAT):
            self.say(alive=True)

    def fail(self, order: int, error: RequestError | RunError) -> None:
        self.say(failure=to_plain(Ending(order, error, "a traceback")))

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
        self.frozen.set()

    def close(self) -> None:
        self.freeze()
        if self.thread.ident:
            self.thread.join()
        self.wire.close()


class Hall:
    """A hub that serves in a thread, and all that have come to it."""

    def __init__(self) -> None:
        taking = listener(0)
        self.port: int = taking.getsockname()[1]
        self.hub = Hub(taking, 3, {"rank": 0, "host": "n0", "asked": ASKED}, SOON)
        self.thread = threading.Thread(target=self.hub.run, daemon=True)
        self.thread.start()
        self.members: list[Member] = []

    def member(self) -> Member:
        """One that connects, and says nothing yet."""
        self.members.append(Member(self.port))
        return self.members[-1]

    def come(self, *ranks: int) -> list[Member]:
        return [self.member().hello(rank) for rank in ranks]

    def all(self) -> list[Member]:
        """All have come, and been told so."""
        members = self.come(0, 1, 2)
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


Made = Callable[..., Hall]


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Makes hubs whose pulse is twenty times as fast; each has to have ended in the end."""
    for name, seconds in (("base.pulse.BEAT", BEAT), ("hosts.hub.BEAT", BEAT)):
        monkeypatch.setattr(f"common.{name}", seconds)
    monkeypatch.setattr("common.hosts.hub.GRACE", 0.6)
    made: list[Hall] = []

    def make() -> Hall:
        made.append(Hall())
        return made[-1]

    yield make
    for each in made:
        with suppress(OSError):
            assert each.ends()


def test_what_is_given_comes_back_by_rank_also_of_several_at_once(hall: Made) -> None:
    members = hall().all()
    for rank, values in ((2, "abc"), (0, "ab"), (1, "abc")):
        for value in values:
            members[rank].say(give=[rank, value])
    for each in members:
        for value in ("a", "b"):
            assert each.hear("got") == [[0, value], [1, value], [2, value]]
    members[0].say(give=None)
    assert [each.hear("got") for each in members] == [[None, [1, "c"], [2, "c"]]] * 3


def test_it_ends_well_once_all_are_done_also_if_one_is_killed_then(hall: Made) -> None:
    here = hall()
    members = here.all()
    for each in members[1:]:
        each.say(done=True)
    members[2].close()
    time.sleep(0.3)
    members[0].say(done=True)
    assert [each.hear("over") for each in members[:2]] == [None, None]
    assert here.ends()


@pytest.mark.parametrize("first", [REST, KILLED, SAID])
def test_what_a_worker_said_is_the_cause_however_late_it_comes(
    hall: Made, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    members = (here := hall()).all()
    monkeypatch.setattr("common.hosts.hub.GRACE", 2 * SOON)  # it ends as soon as all have failed
    order = [first, *(each for each in (REST, KILLED, SAID) if each != first)]
    for rank, each in enumerate(order):
        members[rank].fail(each, RequestError("the cause") if each == SAID else RunError("other"))
        wait_until(lambda: len(here.hub.failures) > rank)  # noqa: B023
    rank = order.index(SAID)
    expected = {"kind": "RequestError", "message": "the cause", "status": 2, "order": SAID}
    expected |= {"rank": rank, "host": f"n{rank}", "details": "a traceback", "about": {}}
    assert [each.hear("over") for each in members] == [expected] * 3


def test_one_that_stops_waits_for_the_others_to_stop(hall: Made) -> None:
    members = hall().all()
    members[1].fail(STOPPED, StoppedError("stopped after step 3", status=130, step=3))
    time.sleep(0.5)  # one that fails gives them 0.3
    began = time.monotonic()
    members[2].fail(STOPPED, StoppedError("stopped after step 3"))
    threading.Timer(0.3, lambda: members[0].fail(STOPPED, StoppedError("stopped"))).start()
    over = members[0].hear("over")
    assert time.monotonic() - began >= 0.3
    assert (over["rank"], over["status"]) == (1, 130)


def test_what_may_come_of_a_silent_process_waits_until_that_is_known(hall: Made) -> None:
    members = hall().all()
    members[2].freeze()
    time.sleep(0.25)
    members[0].fail(REST, RunError("Connection closed by peer"))
    over = members[1].hear("over")
    assert (over["message"], over["rank"], over["host"]) == (SILENT, 2, "n2")


@pytest.mark.parametrize(("rank", "asked"), [(3, ASKED), (2, None)])
def test_a_stranger_is_told_why_it_is_refused(hall: Made, rank: int, asked: object) -> None:
    here = hall()
    members = here.come(0, 1)
    members[1].hear("missing")
    refused = here.member().hello(rank, asked)
    assert refused.hear("refused") == f"there is no process {rank} of 3 here"
    assert refused.is_left()
    members += here.come(2)
    assert [len(each.hear("everyone")) for each in members] == [3] * 3


NONSENSE = [
    b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n",
    b'{"give": 1}\n{"done": true}\n{"failure": {"order": 0}}\n{"stop": true}\n',
    b'{"rank": [2], "asked": {}}\n',
]


@pytest.mark.parametrize("said", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_stranger_that_talks_nonsense_does_no_harm(hall: Made, said: bytes, when: str) -> None:
    here = hall()
    members = here.all() if when == "meanwhile" else here.come(0, 1)
    stranger = socket.create_connection(("localhost", here.port))
    stranger.sendall(said)
    stranger.close()
    time.sleep(0.1)
    if when == "before":
        members += here.come(2)
    for rank, each in enumerate(members):
        each.say(give=rank)
    assert [each.hear("got") for each in members] == [[0, 1, 2]] * 3


def test_a_member_that_talks_nonsense_is_lost(hall: Made) -> None:
    members = hall().all()
    members[1].wire.connection.sendall(b"[]\n")
    assert members[0].hear("over")["rank"] == 1
