"""Only Ctrl-C and SIGTERM end a process at once when they come again; what it frees it keeps."""

import os
import platform
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from started import ROOT, with_signals

WORK = """
import time
from common.base.signals import stoppable
with stoppable(patient={patient}) as stop:
    print("begun", flush=True)
    while not stop.asked:
        time.sleep(0.01)
    print("noted", flush=True)
    time.sleep({seconds})
print(stop.status, flush=True)
"""
WAITS = """
import signal, sys
from common.terminal.command import status
def work():
    try:
        print("begun", flush=True)
        signal.pause()
    finally:
        print("ended", file=sys.stderr)
        open(sys.argv[1], "w").close()
sys.exit(status("it", work))
"""


@pytest.mark.parametrize(
    ("first", "second", "patient", "status"),
    [
        (signal.SIGHUP, signal.SIGINT, False, -signal.SIGINT),
        (signal.SIGUSR1, signal.SIGHUP, False, 0),
        (signal.SIGINT, signal.SIGTERM, True, 0),
    ],
)
def test_a_second_signal_ends_a_process_at_once_if_it_insists(
    first: signal.Signals, second: signal.Signals, patient: bool, status: int
) -> None:
    """Shells and schedulers repeat signals; patience leaves the end to another process."""
    work = WORK.format(patient=patient, seconds=60 if status else 1)
    with with_signals():
        run = subprocess.Popen(
            [sys.executable, "-c", work], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"
    run.send_signal(first)
    assert run.stdout.readline() == "noted\n"
    run.send_signal(second)
    assert run.wait(timeout=20) == status
    said = {signal.SIGUSR1: "143\n", signal.SIGINT: "130\n"}.get(first, "")
    assert run.communicate()[0] == said


def test_a_command_whose_terminal_is_closed_ends_in_order(tmp_path: Path) -> None:
    """It cannot print any more, neither a bar nor its last line."""
    with with_signals():
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(ROOT)
            command = ["-c", WAITS, str(tmp_path / "ended")]
            os.execv(sys.executable, [sys.executable, *command])
    assert b"begun" in os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 143
    assert (tmp_path / "ended").exists()


PAGES = """
import resource
def large():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        bytearray(b"x") * 2**25
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
large()
print(large())
"""
"""Prints the pages of memory of large arrays, after some earlier ones."""

KEEP = "from common.base.machine import keep_memory\nkeep_memory()\n"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of GNU's C library")
def test_large_arrays_cost_no_new_pages_here_or_in_what_is_started() -> None:
    started = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {PAGES!r}])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    pages = []
    for code in (PAGES, KEEP + PAGES, KEEP + started):
        command = [sys.executable, "-c", code]
        pages.append(int(subprocess.check_output(command, env=environment)))
    assert pages[0] > 1000
    assert max(pages[1:]) < 100
