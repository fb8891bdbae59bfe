"""PyTorch's processes on a machine that does not reach itself: its loopback interface is down."""

import errno
import json
import os
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from started import CONCISE, SECONDS, flags

from common.base.errors import RunError

pytestmark = pytest.mark.only("pytorch")

ROOT = Path(__file__).parents[2]
ALONE = ["unshare", "--map-root-user", "--net"]
"""Runs a command where there is no network but a loopback interface that is down."""


def may_be_alone() -> bool:
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_processes_that_cannot_meet_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    launch: Any = import_module("frameworks.pytorch.launch")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(RunError, match=r"\(Network is unreachable\): `ip link set lo up`"):
        launch.launch_processes(print, 2)


@pytest.mark.skipif(not may_be_alone(), reason="no network namespace may be made here")
@pytest.mark.parametrize("devices", [1, 2])
def test_a_run_without_loopback_says_what_to_do(tmp_path: Path, devices: int) -> None:
    command = [*ALONE, sys.executable, *CONCISE, *flags(tmp_path, 3), f"--devices={devices}"]
    done = subprocess.run(
        [*command, "--quiet"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "`ip link set lo up` switches the loopback interface on" in done.stderr
    (left,) = tmp_path.iterdir()
    assert json.loads(left.read_text())["status"] == "failed"
