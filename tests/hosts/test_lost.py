"""A process that is killed or frozen ends the run everywhere, soon, with a line that names it."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from started import children
from summing_chapter import from_step, held
from together import LIMIT, RECORD, Together, record, require_told, wait_until
from together_fixture import together as together

from common.base import pulse
from common.base.children import is_stopped
from common.hosts.hub import Hub
from common.hosts.wire import Message, Wire

HOST = socket.gethostname()
KILLED, FROZEN = signal.SIGKILL, signal.SIGSTOP
FROZE = "has not answered for 15 seconds: it is frozen"
GONE = "is gone: it was killed, or its host is off"


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize(("number", "became"), [(KILLED, "was ended by SIGKILL"), (FROZEN, FROZE)])
def test_a_trainer_that_is_lost_is_named(
    together: Together, rank: int, number: signal.Signals, became: str
) -> None:
    runs = together.all("--quiet", hurt={rank: from_step(3, number, os.getpid)})
    require_told(runs, f"process {rank} on {HOST} {became}")
    assert record(together) == ("failed", f"process {rank} on {HOST} {became}")


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize(
    ("number", "became"), [(KILLED, GONE), (FROZEN, f"{FROZE}, or its host is gone")]
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


@pytest.mark.parametrize("sooner", [0, 1])
def test_a_frozen_hub_is_named(together: Together, sooner: int) -> None:
    early = {"common.base.pulse.LIMIT": pulse.LIMIT - sooner}
    runs = [together.start(0, "--quiet", hurt=held("here"), patches=early)]
    runs += [together.start(rank, "--quiet") for rank in (1, 2)]
    wait_until((together.folder / "here").exists)
    hub, _ = children(runs[0].pid)
    os.kill(hub, FROZEN)
    require_told(runs, f"process 0 on {HOST} {FROZE}, or its host is gone")


def test_a_frozen_supervisor_is_ended_also_if_its_trainer_fails(together: Together) -> None:
    def hurt(step: int) -> None:
        if step == 3:
            os.kill(os.getppid(), FROZEN)
            # It need not be so when `os.kill` returns.
            wait_until(lambda: is_stopped(os.getppid()))
            raise RuntimeError

    *runs, lost = together.all("--quiet", hurt={2: hurt})
    require_told(runs, f"process 2 on {HOST} {FROZE}, or its host is gone")
    assert lost.ended()[0] == -KILLED


@pytest.mark.parametrize("rank", [0, 2])
def test_a_frozen_host_is_named_and_ends_when_it_goes_on(together: Together, rank: int) -> None:
    runs = together.all("--quiet", hurt={0: held("here")})
    wait_until((together.folder / "here").exists)
    lost = runs.pop(rank)
    lost.send_all(FROZEN)
    require_told(runs, f"process {rank} on {HOST} {FROZE}, or its host is gone")
    lost.send_all(signal.SIGCONT)
    assert lost.ended()[0] == 1


def test_what_is_lost_in_real_time_is_known_within_thirty_seconds(tmp_path: Path) -> None:
    both = [Together(tmp_path / name, fast={}) for name in ("trainer", "host")]
    try:
        for each in both:
            each.folder.mkdir()
        mine = both[0].all("--quiet", hurt={1: from_step(3, FROZEN, os.getpid)})
        others = both[1].all("--quiet", hurt={0: held("here")})
        wait_until((both[1].folder / "here").exists)
        others[2].send_all(FROZEN)
        limit = time.monotonic() + 30
        require_told(mine, f"process 1 on {HOST} {FROZE}", 30)
        require_told(others[:2], f"process 2 on {HOST} {FROZE}", limit - time.monotonic())
    finally:
        for each in both:
            each.end()


@pytest.mark.parametrize(
    ("lost", "number", "became"),
    [
        (1, KILLED, GONE),
        (1, FROZEN, f"{FROZE}, or its host is gone"),
        (0, FROZEN, f"{FROZE}, or its host is gone"),
    ],
)
def test_who_is_lost_while_others_have_yet_to_come_is_named(
    together: Together, lost: int, number: signal.Signals, became: str
) -> None:
    runs = [together.start(rank, "--quiet" if rank else "--threads=2") for rank in (0, 1)]
    wait_until(lambda: "2 of 3 processes have come; waiting for 2\n" in runs[0].err())
    runs[lost].send(number)
    status, said = runs[1 - lost].ended(LIMIT)
    assert status == 1
    assert f"process {lost} on {HOST} {became}" in said.splitlines()[-1]
    runs[lost].send(KILLED)


@pytest.mark.parametrize(("number", "became"), [(KILLED, GONE), (FROZEN, FROZE)])
def test_the_first_host_that_is_lost_at_the_meeting_is_named(
    together: Together, number: signal.Signals, became: str
) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: "2 of 3 processes have come; waiting for 2\n" in runs[0].err())
    runs[0].send_all(number)
    require_told(runs[1:], f"process 0 on localhost {became}")


@pytest.mark.parametrize(
    ("who", "number", "became"),
    [
        ("trainer 0", KILLED, "0 on {} was ended by SIGKILL"),
        ("trainer 0", FROZEN, "0 on {} " + FROZE),
        ("process 0", KILLED, "0 on {} " + GONE),
        ("host 2", FROZEN, "2 on {} " + FROZE),
    ],
)
def test_who_is_lost_while_the_record_is_written_is_named(
    together: Together, who: str, number: signal.Signals, became: str
) -> None:
    def finish(*_: object) -> None:
        Path("writing").write_text(f"{os.getpid()}")
        Path("writing").rename("is writing")
        time.sleep(1000)

    runs = together.all("--quiet", patches={"common.training.job.Job.finish": finish})
    wait_until((together.folder / "is writing").exists)
    kind, rank = who.split()
    if kind == "trainer":
        os.kill(int((together.folder / "is writing").read_text()), number)
    elif kind == "process":
        runs.pop(int(rank)).send(number)
    else:
        runs.pop(int(rank)).send_all(number)
    require_told(runs, f"process {became.format(HOST)}")
    assert json.loads((together.folder / RECORD).read_text())["status"] != "complete"


def test_who_is_killed_once_its_work_is_done_holds_nobody_up(together: Together) -> None:
    def finish(*_: object) -> None:
        Path("is writing").touch()
        wait_until(Path("go on").exists)

    def hear(hub: Hub, wire: Wire, message: Message) -> None:
        heard(hub, wire, message)
        if 2 in hub.done:
            Path("is done").touch()

    patches = {"common.training.job.Job.finish": finish, "common.hosts.hub.Hub._hear": hear}
    heard = Hub._hear
    runs = together.all("--quiet", patches=patches)
    wait_until((together.folder / "is writing").exists)
    wait_until((together.folder / "is done").exists)
    runs.pop(2).send(KILLED)
    (together.folder / "go on").touch()
    assert [run.ended() for run in runs] == [(0, "")] * 2
