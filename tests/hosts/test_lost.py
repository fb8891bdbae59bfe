"""A process that is lost ends the run everywhere, and is named."""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from summing_chapter import Hurt, from_step, held
from together import LIMIT, RECORD, Together, record, require_line, together as together, wait_until

from common.base.errors import RequestError, RunError
from common.records.store import read_record

HOST = socket.gethostname()
KILLED, FROZEN = signal.SIGKILL, signal.SIGSTOP
FROZE = "has not answered for 15 seconds: it is frozen"
GONE = "is gone: it was killed, or its host is off"


PLANTED = RunError("it was planted", step=3)
PEER = RuntimeError("Connection closed by peer")


def raising(error: Exception, seconds: float = 0) -> Hurt:
    """Lets a trainer fail before its third step, after some seconds."""

    def hurt(step: int) -> None:
        if step == 3:
            time.sleep(seconds)
            raise error

    return hurt


@pytest.mark.parametrize(
    ("hurt", "rank", "status", "said"),
    [
        ({0: raising(RequestError("ask otherwise"))}, 0, 2, "ask otherwise"),
        ({1: raising(MemoryError())}, 1, 1, "a process failed: MemoryError"),
        # What the loss of one may have caused in another is not why all end.
        ({0: raising(PEER), 1: raising(PLANTED, 0.3)}, 1, 1, "it was planted"),
    ],
)
def test_what_a_worker_says_all_say(
    together: Together, hurt: Mapping[int, Hurt], rank: int, status: int, said: str
) -> None:
    runs = together.all("--quiet", hurt=hurt)
    own = runs.pop(rank)
    require_line(runs, f"error: process {rank} on {HOST}: {said}", status=status)
    found, words = own.ended()
    assert (found, words.partition("error: ")[2].split(";")[0].strip()) == (status, said)
    left = read_record(together.folder / RECORD)
    assert left.status == "failed"
    assert left.failure
    assert left.failure.message.endswith(said)
    assert "raise error" in left.failure.traceback


TRAINER, SUPERVISOR = os.getpid, os.getppid


@pytest.mark.parametrize(
    ("who", "rank", "number", "became"),
    [
        (TRAINER, 2, KILLED, "was ended by SIGKILL"),
        (TRAINER, 0, FROZEN, FROZE),
        (SUPERVISOR, 0, KILLED, GONE),
        (SUPERVISOR, 2, FROZEN, f"{FROZE}, or its host is gone"),
    ],
)
def test_a_process_that_is_lost_is_named(
    together: Together,
    who: Callable[[], int],
    rank: int,
    number: signal.Signals,
    became: str,
) -> None:
    runs = together.all("--quiet", hurt={rank: from_step(3, number, who)})
    lost = runs.pop(rank) if who is SUPERVISOR else None
    host = HOST if lost is None or rank else "localhost"
    require_line(runs, told := f"process {rank} on {host} {became}")
    if lost is None:
        assert record(together) == ("failed", told)
    else:
        assert lost.ended() == (-KILLED, "")  # its trainer ends it, if it is frozen


def test_a_frozen_host_is_named_in_thirty_seconds_and_then_ends(tmp_path: Path) -> None:
    together = Together(tmp_path, fast={})  # in real time
    try:
        *runs, lost = together.all("--quiet", hurt={0: held("here")})
        wait_until((tmp_path / "here").exists)
        began = time.monotonic()
        lost.send_all(FROZEN)
        require_line(runs, f"process 2 on {HOST} {FROZE}, or its host is gone", 30)
        assert time.monotonic() - began < 30
        lost.send_all(signal.SIGCONT)
        assert lost.ended()[0] == 1
    finally:
        together.end()


@pytest.mark.parametrize(
    ("lost", "number", "became"),
    [(1, KILLED, GONE), *((rank, FROZEN, f"{FROZE}, or its host is gone") for rank in (0, 1))],
)
def test_one_that_is_lost_while_others_have_yet_to_come_is_named(
    together: Together, lost: int, number: signal.Signals, became: str
) -> None:
    runs = [together.start(rank, "--quiet" if rank else "--threads=2") for rank in (0, 1)]
    wait_until(lambda: "2 of 3 processes have come; waiting for 2\n" in runs[0].err())
    runs[lost].send(number)
    status, said = runs[1 - lost].ended(LIMIT)
    assert status == 1
    assert f"process {lost} on {HOST if lost else 'localhost'} {became}" in said.splitlines()[-1]
    assert runs[lost].ended()[0] == -KILLED  # its trainer ends it, if it is frozen
