"""A process that fails, is killed or is frozen ends the run everywhere, soon, and is named."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from started import children
from summing_chapter import from_step, held
from together import LIMIT, RECORD, Together, record, require_told, together as together, wait_until

from common.base.errors import RequestError, RunError
from common.records.store import read_record
from common.training.job import Job
from common.training.run import mark_failed

HOST = socket.gethostname()
KILLED, FROZEN = signal.SIGKILL, signal.SIGSTOP
FROZE = "has not answered for 15 seconds: it is frozen"
GONE = "is gone: it was killed, or its host is off"


@pytest.mark.parametrize(
    ("rank", "error", "status", "said"),
    [
        (0, RequestError("ask otherwise"), 2, "ask otherwise"),
        (1, RunError("it was planted", step=3), 1, "it was planted"),
        (1, MemoryError(), 1, "a process failed: MemoryError"),
    ],
)
def test_what_a_worker_says_all_say(
    together: Together, rank: int, error: Exception, status: int, said: str
) -> None:
    def hurt(step: int) -> None:
        if step == 3:
            raise error

    runs = together.all("--quiet", hurt={rank: hurt})
    own = runs.pop(rank)
    require_told(runs, f"error: process {rank} on {HOST}: {said}", status=status)
    found, words = own.ended()
    assert (found, words.partition("error: ")[2].split(";")[0].strip()) == (status, said)
    left = read_record(together.folder / RECORD)
    assert left.status == "failed"
    failure = left.failure
    assert failure
    assert failure.message.endswith(said)
    assert "raise error" in failure.traceback


@pytest.mark.parametrize(
    ("rank", "number", "became"), [(2, KILLED, "was ended by SIGKILL"), (0, FROZEN, FROZE)]
)
def test_a_trainer_that_is_lost_is_named(
    together: Together, rank: int, number: signal.Signals, became: str
) -> None:
    runs = together.all("--quiet", hurt={rank: from_step(3, number, os.getpid)})
    require_told(runs, f"process {rank} on {HOST} {became}")
    assert record(together) == ("failed", f"process {rank} on {HOST} {became}")


@pytest.mark.parametrize(
    ("rank", "number", "became"), [(0, KILLED, GONE), (2, FROZEN, f"{FROZE}, or its host is gone")]
)
def test_a_supervisor_that_is_lost_is_named(
    together: Together, rank: int, number: signal.Signals, became: str
) -> None:
    runs = together.all("--quiet", hurt={rank: from_step(3, number, os.getppid)})
    lost = runs.pop(rank)
    require_told(runs, f"process {rank} on {HOST} {became}")
    assert lost.ended() == (-KILLED, "")  # its trainer ends it, if it is frozen
    if rank:
        assert record(together)[0] == "failed"


def test_a_frozen_hub_is_named(together: Together) -> None:
    runs = together.all("--quiet", hurt={0: held("here")})
    wait_until((together.folder / "here").exists)
    hub, _ = children(runs[0].pid)
    os.kill(hub, FROZEN)
    require_told(runs, f"process 0 on {HOST} {FROZE}, or its host is gone")


def test_a_frozen_host_is_named_in_thirty_seconds_and_ends_when_it_resumes(tmp_path: Path) -> None:
    together = Together(tmp_path, fast={})  # in real time
    try:
        *runs, lost = together.all("--quiet", hurt={0: held("here")})
        wait_until((tmp_path / "here").exists)
        began = time.monotonic()
        lost.send_all(FROZEN)
        require_told(runs, f"process 2 on {HOST} {FROZE}, or its host is gone", 30)
        assert time.monotonic() - began < 30
        lost.send_all(signal.SIGCONT)
        assert lost.ended()[0] == 1
    finally:
        together.end()


@pytest.mark.parametrize(
    ("lost", "number", "became"), [(1, KILLED, GONE), (0, FROZEN, f"{FROZE}, or its host is gone")]
)
def test_one_that_is_lost_while_others_have_yet_to_come_is_named(
    together: Together, lost: int, number: signal.Signals, became: str
) -> None:
    runs = [together.start(rank, "--quiet" if rank else "--threads=2") for rank in (0, 1)]
    wait_until(lambda: "2 of 3 processes have come; waiting for 2\n" in runs[0].err())
    runs[lost].send(number)
    status, said = runs[1 - lost].ended(LIMIT)
    assert status == 1
    assert f"process {lost} on {HOST} {became}" in said.splitlines()[-1]
    runs[lost].send(KILLED)


def test_the_first_host_that_is_lost_at_the_meeting_is_named(together: Together) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: "2 of 3 processes have come; waiting for 2\n" in runs[0].err())
    runs[0].send_all(FROZEN)
    require_told(runs[1:], f"process 0 on localhost {FROZE}")


def test_one_that_is_lost_while_the_record_is_written_is_named(together: Together) -> None:
    def finish(*_: object) -> None:
        Path("writing").touch()
        os.kill(os.getpid(), KILLED)
        time.sleep(1000)

    runs = together.all("--quiet", patches={"common.training.job.Job.finish": finish})
    require_told(runs, f"process 0 on {HOST} was ended by SIGKILL")
    assert (together.folder / "writing").exists()
    assert json.loads((together.folder / RECORD).read_text())["status"] != "complete"


def test_the_lost_one_is_the_cause_also_if_a_launcher_ends_the_rest(together: Together) -> None:
    def asked(job: Job, error: BaseException) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        mark_failed(job, error)

    hurt, late = {2: from_step(3, KILLED, os.getppid)}, "common.training.run.mark_failed"
    *runs, _ = together.all("--quiet", hurt=hurt, patches={late: asked})
    require_told(runs[:1], f"process 2 on {HOST} {GONE}")
    assert record(together) == ("failed", f"process 2 on {HOST} {GONE}")
