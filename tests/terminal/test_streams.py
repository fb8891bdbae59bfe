"""The last line of a command, whatever is in a name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_chapter import RECORD

from common.base.errors import RunError, gist
from common.records.record import read_record
from common.terminal.command import status

ROOT = Path(__file__).parents[2]
FAKE = """
import sys
from functools import partial
import common.data.dataset
from fake_chapter import FLAGS, FakeChapter, synthetic
from numpy_chapter import PLACE, standing_in
from common.training.cli import main
common.data.dataset.synthetic = partial(synthetic, 30, 10)
sys.modules[PLACE] = standing_in(FakeChapter())
raise SystemExit(main("pytorch", "scratch", FLAGS))
"""
FULL = "error: what is printed cannot be written: No space left on device"


@pytest.mark.parametrize("redirected", ["2>&1 | true", "<&- >&- 2>&-", ">/dev/full"])
def test_a_run_that_no_one_reads_is_done_and_quiet(tmp_path: Path, redirected: str) -> None:
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "tests/support"))
    full = redirected == ">/dev/full"
    shell = f'{{ "$@"; echo $? >status; }} {redirected}'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", FAKE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "status").read_text() == f"{int(full)}\n"
    assert done.stderr.count("rror") == full
    assert not full or done.stderr.endswith(f"{FULL}\n")
    assert full or read_record(tmp_path / RECORD).status == "complete"


def test_an_error_is_one_line_whatever_is_in_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise RunError("there is no é\n\x1b[2Ja\u202eb\udcff")

    assert status("command", work) == 1
    shown = r"é\n\x1b[2Ja\u202eb\udcff"
    assert capsys.readouterr().err == f"command: error: there is no {shown}\n"


def test_an_error_of_many_lines_is_told_by_one() -> None:
    for text, line in (
        ("Traceback (most recent call last):\n  File 'a'\nError: no such", "Error: no such"),
        ("\nfirst\nsecond\n", "first"),
        (" \n", "no reason given"),
        ("terminate called after throwing\n  what():  no such file\nAborted", "no such file"),
    ):
        assert gist(text) == line
