"""A command whose output is read no more ends quietly; one that cannot be written, with a line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_chapter import RECORD
from rich.console import Console

from common.terminal.command import status

ROOT = Path(__file__).parents[2]
FAKE = """
import sys
from functools import partial
import common.data.dataset
from fake_chapter import FLAGS, FakeChapter, synthetic
from named_devices import PLACE, standing_in
from common.training.cli import main
common.data.dataset.synthetic = partial(synthetic, 30, 10)
sys.modules[PLACE] = standing_in(FakeChapter())
raise SystemExit(main("pytorch", "scratch", FLAGS))
"""


def printing(folder: Path, redirected: str) -> "subprocess.CompletedProcess[str]":
    """A run whose standard streams a shell has redirected so; its status is in a file there."""
    script = f'{{ "$@"; echo $? >status; }} {redirected}'
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "tests/support"))
    return subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-c", FAKE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


CLOSED = ["2>&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize("redirected", ["| true", "2>&1 >/dev/null | true", *CLOSED])
def test_a_run_that_no_one_reads_is_done_and_quiet(tmp_path: Path, redirected: str) -> None:
    done = printing(tmp_path, redirected)
    assert (tmp_path / "status").read_text() == "0\n"
    assert "rror" not in done.stderr
    assert json.loads((tmp_path / RECORD).read_text())["status"] == "complete"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path) -> None:
    done = printing(tmp_path, ">/dev/full")
    assert (tmp_path / "status").read_text() == "1\n"
    last = done.stderr.splitlines()[-1]
    assert last.endswith("error: what is printed cannot be written: No space left on device")


def test_no_columns_are_as_many_as_usual(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    status("command", lambda: Console().print("epoch 1/1: loss 2.305"))
    assert capsys.readouterr().out == "epoch 1/1: loss 2.305\n"
