"""What becomes of a command whose output or whose errors nobody takes: it does its work."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_chapter import RECORD, CommandLine, FakeChapter, written

from common.backends.devices import Process
from common.models.weights_file import save_weights

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
raise SystemExit(main("pytorch", "scratch", [*FLAGS, *sys.argv[1:]]))
"""
SILENT = [
    "| true",
    ">&-",
    "2>&-",
    "2>/dev/full",
    "2>&1 >/dev/null | true",
    "<&- >&- 2>&-",
]
"""What a shell can do to the streams of a command without asking too much of it."""

FULL = "standard output cannot be written: No space left on device; all else is done"


class Ended:
    """A Python that a shell has run with its streams redirected."""

    def __init__(self, folder: Path, redirected: str, *arguments: str, **environment: str) -> None:
        script = f'{{ "$@"; echo $? >"$STATUS"; }} {redirected}'
        status = folder / "status"
        paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "tests/support"))
        done = subprocess.run(
            ["sh", "-c", script, "sh", sys.executable, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "STATUS": str(status), **environment},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        self.out, self.err = done.stdout, done.stderr
        self.status = int(status.read_text())
        status.unlink()


def status_in(record: Path) -> str:
    status: str = json.loads(record.read_text(encoding="utf-8"))["status"]
    return status


@pytest.mark.parametrize("redirected", SILENT)
def test_a_run_is_done_whoever_listens(tmp_path: Path, redirected: str) -> None:
    ended = Ended(tmp_path, redirected, "-c", FAKE)
    assert ended.status == 0, ended.err
    assert status_in(tmp_path / RECORD) == "complete"
    assert "error" not in ended.out + ended.err


@pytest.mark.parametrize("errors", ["", "2>/dev/full"])
def test_a_closing_line_that_finds_no_space_is_told_and_the_record_stays(
    tmp_path: Path, errors: str
) -> None:
    ended = Ended(tmp_path, f">/dev/full {errors}", "-c", FAKE, "--quiet")
    assert ended.status == 1
    said = f"python -m frameworks.pytorch.scratch: error: {FULL}\n"
    assert ended.err == ("" if errors else said)
    assert status_in(tmp_path / RECORD) == "complete"


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2>&1 >/dev/null | true"])
def test_a_request_is_refused_though_nobody_hears_why(tmp_path: Path, redirected: str) -> None:
    for wrong in ("--devices=0", "--train-examples=31"):
        ended = Ended(tmp_path, redirected, "-c", FAKE, wrong)
        assert (ended.status, ended.out, ended.err) == (2, "", "")


@pytest.mark.parametrize(
    "module",
    [
        "bench",
        "bench.profile",
        "common.grid",
        "common.parity",
        "common.scaling",
        "common.seeds",
        "common.summary",
        "frameworks.mxnet.concise",
    ],
)
def test_every_command_says_that_it_could_not_print(tmp_path: Path, module: str) -> None:
    ended = Ended(tmp_path, ">/dev/full", "-m", module, "--help")
    assert (ended.status, ended.err) == (1, f"python -m {module}: error: {FULL}\n")
    assert Ended(tmp_path, "| true", "-m", module, "--help").status == 0
    wrong = Ended(tmp_path, "2>&-", "-m", module, "--nonsense")
    assert (wrong.status, wrong.out, wrong.err) == (2, "", "")


@pytest.mark.parametrize(("other", "verdict"), [(1.0, 0), (2.0, 1)])
def test_a_verdict_that_nobody_reads_is_the_same(
    tmp_path: Path, other: float, verdict: int
) -> None:
    for name, value in (("a", 1.0), ("b", other)):
        save_weights(tmp_path / f"{name}.safetensors", {"w": np.full(3, value)})
    command = ["-m", "common.parity", "a.safetensors", "b.safetensors"]
    for redirected in ("| true", ">&-", "2>&-"):
        assert Ended(tmp_path, redirected, *command).status == verdict
    plain = Ended(tmp_path, "", *command, PYTHONIOENCODING="ascii")
    assert (plain.status, plain.err) == (verdict, "")


def test_what_fails_after_a_run_is_complete_leaves_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launch(chapter: FakeChapter, worker: Callable[[Process], None], *_: object) -> None:
        worker(Process())
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeChapter, "launch", launch)
    assert CommandLine(monkeypatch, tmp_path)() == 130
    assert written()["status"] == "complete"
    assert capsys.readouterr().err.endswith("error: interrupted\n")


def command(framework: str, chapter: str, out: Path) -> list[str]:
    flags = "--devices=2 --dataset=synthetic --train-examples=40 --test-examples=20"
    more = ["--width=1"] if chapter == "concise" else []
    what = f"frameworks.{framework}.{chapter}"
    return ["-m", what, *flags.split(), *more, "--batch-size=8", "--steps=2", f"--out={out}"]


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_no_framework_needs_standard_error(framework: str, tmp_path: Path, redirected: str) -> None:
    ended = Ended(tmp_path, redirected, *command(framework, "scratch", tmp_path / "out"))
    assert (ended.status, ended.err, ended.out.count("\n")) == (0, "", 1)
    assert status_in(tmp_path / "out" / f"{framework}-scratch-2dev.json") == "complete"


@pytest.mark.only("pytorch")
def test_processes_have_the_streams_of_the_command(tmp_path: Path) -> None:
    record = tmp_path / "out" / "pytorch-concise-2dev.json"
    for redirected, status in ((">/dev/full", 1), ("2>&-", 0), ("2>&1 >/dev/null | true", 0)):
        ended = Ended(tmp_path, redirected, *command("pytorch", "concise", tmp_path / "out"))
        assert (ended.status, status_in(record)) == (status, "complete")
        assert ended.err.count("error") == ended.err.count(FULL) == status
        record.unlink()
