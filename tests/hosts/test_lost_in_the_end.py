"""One that is lost while the others stop, or just before they are asked to, is what counts."""

import os
import signal
import socket
from pkgutil import resolve_name

import pytest
from summing_chapter import from_step, nothing
from together import Together, record, require_told
from together_fixture import together as together

from common.training.loop import Training

HOST = socket.gethostname()
KILLED = signal.SIGKILL
GONE = "is gone: it was killed, or its host is off"


@pytest.mark.parametrize("late", ["common.hosts.meeting.end", "common.training.run.mark_failed"])
def test_who_was_lost_is_the_cause_also_if_a_launcher_ends_the_rest(
    together: Together, late: str
) -> None:
    found = resolve_name(late)

    def asked(*given: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return found(*given)

    hurt = {2: from_step(3, KILLED, os.getppid)}
    *runs, _ = together.all("--quiet", hurt=hurt, patches={late: asked})
    require_told(runs[:1], f"process 2 on {HOST} {GONE}")
    assert record(together) == ("failed", f"process 2 on {HOST} {GONE}")


def test_one_that_is_lost_while_all_stop_is_the_cause(together: Together) -> None:
    stop = Training._stop

    def lost(self: Training) -> None:
        os.kill(os.getppid(), KILLED)
        stop(self)

    hurt = {0: from_step(3, signal.SIGTERM, os.getppid)}
    flags = ("--quiet", "--steps=60")
    runs = [together.start(rank, *flags, hurt=hurt.get(rank, nothing)) for rank in (0, 1)]
    together.start(2, *flags, patches={"common.training.loop.Training._stop": lost})
    require_told(runs, f"process 2 on {HOST} {GONE}")
    assert record(together) == ("failed", f"process 2 on {HOST} {GONE}")
