"""Commands started as by a user, and their processes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SECONDS = 300
"""No command takes so long, however busy the machine."""

SMALL = (
    *("--devices=2", "--dataset=synthetic", "--train-examples=60", "--test-examples=20"),
    *("--batch-size=15", "--quiet"),
)
"""The flags of a run that takes no longer than its start."""


OFFLINE = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https")}
"""Variables with which no mirror answers."""


def python(
    *words: object, folder: str | Path = ROOT, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Runs this Python with these words to the end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def free_port() -> int:
    """A port that the system chooses, at which no process listens."""
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def with_signals() -> Iterator[None]:
    """Processes started meanwhile receive signals that nohup or a background shell ignores."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def require_proc() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("there is no /proc here")


def children(parent: int) -> list[int]:
    """The processes that a process has started, in order."""
    require_proc()
    return [
        int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    ]


def alive(process: int) -> bool:
    """Whether a process runs and is no zombie."""
    require_proc()
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone, before or after the file was opened
        return False


def descendants(process: int) -> list[int]:
    """All processes that a process has started, directly or not."""
    try:
        pids = children(process)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return pids + [pid for child in pids for pid in descendants(child)]


def require_gone(processes: list[int]) -> None:
    """Orphans need a moment to notice that they are orphans."""
    limit = time.monotonic() + 20
    while any(alive(process) for process in processes):
        assert time.monotonic() < limit
        time.sleep(0.05)
