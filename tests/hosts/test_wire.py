"""Messages arrive whole however they are cut; whatever is none ends the connection alone."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from common.hosts.wire import LONGEST, Wire, listener, reachable

MESSAGES: list[dict[str, Any]] = [
    {"alive": True},
    {"give": [1, 2.5, None, "ü\n\u2028\x00"]},
    {"failure": {"details": 'Traceback "x"\n' * 300}},
    {},
]

Ends = tuple[Wire, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A wire, and the other end of its connection."""
    with listener(0) as taking:
        theirs = socket.create_connection(("localhost", taking.getsockname()[1]))
        wire = Wire(taking.accept()[0])
    yield wire, theirs
    theirs.close()
    wire.close()


def received(wire: Wire, count: int) -> list[dict[str, Any]]:
    """So many messages, or as many as come before the end."""
    found: list[dict[str, Any]] = []
    while len(found) < count and not wire.closed:
        found += wire.receive()
    return found


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_messages_cut_anywhere_arrive_whole(ends: Ends, size: int) -> None:
    wire, theirs = ends
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    text = b"".join(json.dumps(each).encode() + b"\n" for each in MESSAGES)
    found: list[dict[str, Any]] = []
    for at in range(0, len(text), size):
        theirs.sendall(text[at : at + size])
        found += wire.receive()
    assert found + received(wire, len(MESSAGES) - len(found)) == MESSAGES
    assert not wire.closed


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n", b"[1]\n", b"\xff\n", b"[" * 100_000])
def test_what_is_no_message_ends_the_connection(ends: Ends, said: bytes) -> None:
    wire, theirs = ends
    theirs.sendall(said + b'\n{"alive": true}\n')
    theirs.shutdown(socket.SHUT_WR)
    assert received(wire, 2) == []
    assert wire.closed


def test_what_is_no_message_is_not_kept_for_ever(ends: Ends) -> None:
    wire, theirs = ends
    theirs.setblocking(False)
    sent = 0
    while not wire.closed:
        if sent <= 2 * LONGEST:
            sent += theirs.send(b"x" * 4096)
        assert list(wire.receive()) == []
    assert LONGEST < sent < 2 * LONGEST
    assert len(wire.rest) < LONGEST + (1 << 17)


def test_what_was_said_before_the_end_arrives_and_half_a_message_does_not(ends: Ends) -> None:
    wire, theirs = ends
    theirs.sendall(b'{"failure": 1}\n{"done": true}\n{"give": [1')
    theirs.close()
    assert received(wire, 3) == [{"failure": 1}, {"done": True}]
    assert wire.closed
    for _ in range(100):
        wire.send(alive=True)  # which does no harm


@pytest.mark.parametrize(
    ("own", "seen", "expected"),
    [
        ("127.0.0.1", ["127.0.1.1", "10.0.0.1", "10.0.0.2"], "10.0.0.1"),
        ("10.0.0.7", ["10.0.0.1"], "10.0.0.7"),
        ("127.0.0.1", ["127.0.1.1"], "127.0.0.1"),
    ],
)
def test_no_other_host_is_told_of_an_address_of_its_own(
    own: str, seen: list[str], expected: str
) -> None:
    assert reachable(own, seen) == expected
