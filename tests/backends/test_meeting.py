"""Processes that torchrun has started watch each other: who is frozen is named, and nobody else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

from common.backends.devices import Process
from common.base.errors import RunError

pytestmark = pytest.mark.only("pytorch")

FIRST = Process(0, 3, 0, 3)
STORE = """
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
input()
"""

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Started]:
    """Starts a command that is killed in the end."""
    started = []

    def begin(*command: str) -> "subprocess.Popen[str]":
        run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(run)
        return run

    yield begin
    for each in started:
        each.kill()
        each.communicate()


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a pulse that is fifty times as fast."""
    found: Any = import_module("frameworks.pytorch.meeting")
    for module in ("frameworks.pytorch.meeting", "common.base.pulse"):
        monkeypatch.setattr(f"{module}.BEAT", 0.02)
    return found


@pytest.fixture
def peers(start: Started) -> "list[subprocess.Popen[str]]":
    """Processes 1 and 2, which live and say nothing."""
    return [start("sleep", "1000") for _ in range(2)]


@pytest.fixture
def store(meeting: Any, peers: "list[subprocess.Popen[str]]") -> Any:
    """Where three processes have met."""
    kept = meeting.dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    return met(meeting, kept, peers)


def met(meeting: Any, kept: Any, peers: "list[subprocess.Popen[str]]") -> Any:
    """The part of a store that belongs to this attempt, with the numbers of the processes."""
    here = meeting.dist.PrefixStore("attempt 0", kept)
    for rank, peer in enumerate(peers, 1):
        here.set(f"{rank}", f"{peer.pid}")
    return here


def test_all_that_are_frozen_are_ended_and_one_is_named(
    meeting: Any, store: Any, peers: "list[subprocess.Popen[str]]"
) -> None:
    def waits() -> None:
        with meeting.watched(FIRST, store):
            for peer in peers:
                peer.wait(timeout=20)
            raise RuntimeError("Connection closed by peer")

    handler = signal.getsignal(signal.SIGTERM)
    said = r"^process [12] of 3 has not answered for 15 seconds: it is frozen$"
    try:
        with pytest.raises(RunError, match=said):
            waits()
        assert [peer.poll() for peer in peers] == [-signal.SIGKILL] * 2
        # It has to be said, whatever the launcher sends meanwhile.
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_who_has_ended_or_is_done_is_not_called_frozen(
    meeting: Any, store: Any, peers: "list[subprocess.Popen[str]]", error: type[BaseException]
) -> None:
    def fails() -> None:
        with meeting.watched(FIRST, store):
            time.sleep(1)  # three times what makes somebody frozen
            raise error("of its own")

    handler = signal.getsignal(signal.SIGTERM)
    peers[0].kill()
    store.set("2 is done", "")
    with pytest.raises(error, match="of its own"):
        fails()
    assert peers[1].poll() is None
    assert signal.getsignal(signal.SIGTERM) is handler


def test_processes_of_another_host_are_left_alone(
    meeting: Any, store: Any, peers: "list[subprocess.Popen[str]]"
) -> None:
    with meeting.watched(Process(0, 3, 0, 1), store):
        time.sleep(1)
    assert [peer.poll() for peer in peers] == [None, None]
    assert store.check(["0 is done"])
    assert not store.check(["frozen"])


def test_a_store_that_does_not_answer_holds_nobody_up(
    meeting: Any,
    peers: "list[subprocess.Popen[str]]",
    start: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meeting, "ANSWER", 0.2)
    keeper = start(sys.executable, "-c", STORE)
    assert keeper.stdout
    port, limit = int(keeper.stdout.readline()), timedelta(seconds=60)
    kept = meeting.dist.TCPStore("127.0.0.1", port, is_master=False, timeout=limit)
    here = met(meeting, kept, peers)

    def fails() -> None:
        with meeting.watched(FIRST, here):
            os.kill(keeper.pid, signal.SIGSTOP)
            time.sleep(0.1)
            raise RuntimeError("of its own")

    began = time.monotonic()
    with pytest.raises(RuntimeError, match="of its own"):
        fails()
    assert time.monotonic() - began < 5
    assert [peer.poll() for peer in peers] == [None, None]
