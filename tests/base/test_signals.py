"""The first signal is noted; only Ctrl-C and SIGTERM end a process at once when they come again."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from started import heard

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
    with heard():
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert line_of(run) == "begun"
    return run


def line_of(run: "subprocess.Popen[str]") -> str:
    assert run.stdout is not None
    return run.stdout.readline().strip()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGHUP])
def test_a_second_signal_ends_it_at_once(first: signal.Signals) -> None:
    run = start()
    run.send_signal(first)
    assert (line_of(run), line_of(run)) == ("noted", "130" if first == signal.SIGINT else "143")
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=10) == -signal.SIGINT
    run.communicate()


@pytest.mark.parametrize(
    ("second", "patient"),
    [(signal.SIGHUP, False), (signal.SIGUSR1, False), (signal.SIGTERM, True)],
)
def test_what_shells_and_schedulers_repeat_ends_nothing_and_patience_waits_for_others(
    second: signal.Signals, patient: bool
) -> None:
    run = start(patient=patient, seconds=1)
    run.send_signal(signal.SIGUSR1)
    assert (line_of(run), line_of(run)) == ("noted", "143")
    run.send_signal(second)
    assert run.wait(timeout=20) == 0
    assert run.communicate()[0] == ""


def test_a_command_whose_terminal_is_closed_still_ends_in_order(tmp_path: Path) -> None:
    """It cannot print any more, neither a bar nor its last line."""
    work = (
        "import signal, sys\n"
        "from common.terminal.command import status\n"
        "def work():\n"
        "    try:\n"
        "        print('begun', flush=True)\n"
        "        signal.pause()\n"
        "    finally:\n"
        "        print('ended', file=sys.stderr)\n"
        f"        open({str(tmp_path / 'ended')!r}, 'w').close()\n"
        "sys.exit(status('it', work))\n"
    )
    with heard():
        child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", work])
    assert b"begun" in os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 143
    assert (tmp_path / "ended").exists()
