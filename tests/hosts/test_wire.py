"""Messages arrive whole however they are cut; whatever is none ends the connection alone."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from common.hosts.wire import LONGEST, Wire, address, listener, reachable

MESSAGES: list[dict[str, Any]] = [
    {"alive": True},
    {"give": [1, 2.5, None, "ü\n\u2028\x00"]},
    {"failure": {"details": 'Traceback "x"\n' * 300}},
    {},
]


@pytest.fixture
def ends() -> Iterator[tuple[Wire, socket.socket]]:
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


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 1 << 20])
def test_messages_cut_anywhere_arrive_whole(ends: tuple[Wire, socket.socket], size: int) -> None:
    wire, theirs = ends
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    text = b"".join(json.dumps(each).encode() + b"\n" for each in MESSAGES)
    found: list[dict[str, Any]] = []
    for at in range(0, len(text), size):
        theirs.sendall(text[at : at + size])
        if size < 1000:
            found += wire.receive()
    found += received(wire, len(MESSAGES) - len(found))
    assert found == MESSAGES
    assert not wire.closed


def test_both_ends_understand_each_other(ends: tuple[Wire, socket.socket]) -> None:
    wire, other = ends[0], Wire(ends[1])
    for message in MESSAGES:
        other.send(**message)
        wire.send(**message)
    assert received(wire, len(MESSAGES)) == received(other, len(MESSAGES)) == MESSAGES


def test_a_long_message_arrives_while_somebody_reads(ends: tuple[Wire, socket.socket]) -> None:
    wire, other = ends[0], Wire(ends[1])
    message = {"failure": "x" * (LONGEST - 100)}
    sending = threading.Thread(target=lambda: other.send(**message))
    sending.start()
    assert received(wire, 1) == [message]
    sending.join()


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n",
        b"[1]\n",
        b"null\n",
        b"\n",
        b"\xff\n",
        b"{'a': 1}\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 20_000 + b"\n",
    ],
)
def test_what_is_no_message_ends_the_connection(
    ends: tuple[Wire, socket.socket], said: bytes
) -> None:
    wire, theirs = ends
    theirs.sendall(said + b'{"alive": true}\n')
    theirs.shutdown(socket.SHUT_WR)
    assert received(wire, 2) == []
    assert wire.closed


def test_what_is_no_message_is_not_kept_for_ever(ends: tuple[Wire, socket.socket]) -> None:
    wire, theirs = ends
    theirs.setblocking(False)
    sent = 0
    while not wire.closed:
        if sent <= 2 * LONGEST:
            sent += theirs.send(b"x" * 4096)
        assert list(wire.receive()) == []
    assert LONGEST < sent < 2 * LONGEST
    assert len(wire.rest) < LONGEST + (1 << 17)


def test_half_a_message_is_none(ends: tuple[Wire, socket.socket]) -> None:
    wire, theirs = ends
    theirs.sendall(b'{"alive": true}\n{"give": [1')
    theirs.shutdown(socket.SHUT_WR)
    assert received(wire, 2) == [{"alive": True}]
    assert wire.closed


def test_what_was_said_before_the_end_arrives(ends: tuple[Wire, socket.socket]) -> None:
    wire, theirs = ends
    theirs.sendall(b'{"failure": 1}\n{"done": true}\n')
    theirs.close()
    assert received(wire, 2) == [{"failure": 1}, {"done": True}]
    assert received(wire, 1) == []
    assert wire.closed


def test_what_is_said_to_nobody_does_no_harm(ends: tuple[Wire, socket.socket]) -> None:
    wire, theirs = ends
    theirs.close()
    for _ in range(100):
        wire.send(alive=True)
    assert wire.closed or not list(wire.receive())
    wire.close()
    wire.send(alive=True)


def test_addresses_are_as_others_reach_them(ends: tuple[Wire, socket.socket]) -> None:
    for end in ("ours", "theirs"):
        assert address(ends[0].connection, end) in {"127.0.0.1", "::1"}
    with listener(0) as taking:
        port = taking.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), taking.accept()[0] as accepted:
            assert address(accepted, "theirs") == "127.0.0.1"


@pytest.mark.parametrize(
    ("own", "seen", "expected"),
    [
        ("127.0.0.1", ["127.0.1.1", "10.0.0.1", "10.0.0.2"], "10.0.0.1"),
        ("::1", ["127.0.1.1", "fe80::1%eth0"], "fe80::1%eth0"),
        ("10.0.0.7", ["10.0.0.1"], "10.0.0.7"),
        ("127.0.0.1", ["127.0.1.1"], "127.0.0.1"),
        ("127.0.0.1", [], "127.0.0.1"),
    ],
)
def test_no_other_host_is_told_of_an_address_of_its_own(
    own: str, seen: list[str], expected: str
) -> None:
    assert reachable(own, seen) == expected
