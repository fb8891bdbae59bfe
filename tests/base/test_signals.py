"""The first signal is noted, the second one ends a process at once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORK = """
import time
from common.base.signals import stoppable
with stoppable(lambda number: print("noted", flush=True), patient={patient}) as stop:
    print("begun", flush=True)
    time.sleep(0.1)
    while not stop.asked:
        time.sleep(0.01)
    print(stop.status, flush=True)
    time.sleep({seconds})
"""


def start(*, patient: bool = False, seconds: float = 60) -> "subprocess.Popen[str]":
    """A process that notes a signal, and then takes its time."""
    command = [sys.executable, "-c", WORK.format(patient=patient, seconds=seconds)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert line_of(run) == "begun"
    return run


def line_of(run: "subprocess.Popen[str]") -> str:
    assert run.stdout is not None
    return run.stdout.readline().strip()


STATUSES = {signal.SIGINT: "130", signal.SIGTERM: "143", signal.SIGUSR1: "143"}


@pytest.mark.parametrize("first", STATUSES)
def test_a_second_signal_ends_it_at_once(first: signal.Signals) -> None:
    run = start()
    run.send_signal(first)
    assert (line_of(run), line_of(run)) == ("noted", STATUSES[first])
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=10) == -signal.SIGINT
    run.communicate()


@pytest.mark.parametrize(("second", "patient"), [(signal.SIGUSR1, False), (signal.SIGTERM, True)])
def test_what_schedulers_repeat_ends_nothing_and_patience_waits_for_others(
    second: signal.Signals, patient: bool
) -> None:
    run = start(patient=patient, seconds=1)
    run.send_signal(signal.SIGUSR1)
    assert (line_of(run), line_of(run)) == ("noted", "143")
    run.send_signal(second)
    assert run.wait(timeout=20) == 0
    assert run.communicate()[0] == ""
