"""Whatever ends a command, what it has started ends with it, and leaves no file behind."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGKILL, Signals
from typing import Any

import pytest
from started import SECONDS, descendants, heard, require_gone

ROOT = Path(__file__).parents[2]
ENDLESS = [
    *("--dataset=synthetic", "--train-examples=60", "--test-examples=20", "--batch-size=15"),
    *("--devices=2", "--threads=1", "--steps=1000000", "--width=4", "--quiet"),
]


@pytest.mark.only("pytorch")
@pytest.mark.parametrize(("number", "status"), [(SIGKILL, -SIGKILL), (SIGINT, 130)])
def test_a_run_that_is_stopped_takes_its_processes_along(
    tmp_path: Path, number: Signals, status: int
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    # PyTorch's cache of compiled code, which the next run takes, too, is no such file.
    folders = {"TMPDIR": str(temporary), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "frameworks.pytorch.concise", *ENDLESS, f"--out={tmp_path}"]
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with heard():
        run = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | folders, start_new_session=True, **how
        )
    try:
        record, limit = tmp_path / "pytorch-concise-2dev.json", time.monotonic() + SECONDS
        while not record.exists():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < limit
            time.sleep(0.1)
        processes = descendants(run.pid)
        assert len(processes) >= 3  # the server and both devices
        if number == SIGINT:
            os.killpg(run.pid, number)  # as a terminal does
        else:
            run.send_signal(number)
        _, err = run.communicate(timeout=SECONDS)
        assert run.returncode == status
        require_gone(processes)
    finally:
        with suppress(ProcessLookupError):  # as it should be
            os.killpg(run.pid, SIGKILL)
    assert json.loads(record.read_text())["status"] in ("running", "interrupted")
    assert not list(temporary.iterdir())
    said = r".*: error: stopped after step [\d,]+ of 1,000,000, and kept no checkpoint\n"
    assert number == SIGKILL or re.fullmatch(said, err)
