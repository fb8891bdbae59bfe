"""A run that is not complete never takes the place of one that is: it goes beside it."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from fake_chapter import RECORD, CommandLine, FakeChapter, written
from writes import before

from common.base.errors import RequestError
from common.records.store import overtaken, read_record, read_tensors, unfinished

FULL = "[Errno 28] No space left on device"
LONG_AGO = "2001-02-03T04:05:06+00:00"
BESIDE = unfinished(RECORD)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line; an earlier run has left its record already."""
    command = CommandLine(monkeypatch, tmp_path)
    assert command("--quiet") == 0
    edit(RECORD, started=LONG_AGO)
    return command


def beside() -> dict[str, Any]:
    """The record that a later run has left beside the earlier one, which is what it was."""
    require_earlier()
    content: dict[str, Any] = json.loads(BESIDE.read_text(encoding="utf-8"))
    return content


def require_earlier() -> None:
    """The earlier record is complete, and has its own tensors."""
    assert (written()["status"], written()["started"]) == ("complete", LONG_AGO)
    read_tensors(RECORD, read_record(RECORD))


def require_alone() -> None:
    """Only the earlier record is there, with its own tensors."""
    require_earlier()
    assert sorted(RECORD.parent.iterdir()) == sorted([RECORD, RECORD.with_suffix(".safetensors")])


def failing(monkeypatch: pytest.MonkeyPatch, function: str, error: Exception) -> None:
    """Lets a function of the chapter fail."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(FakeChapter, function, fail)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_full_disk_leaves_the_record_of_an_earlier_run(
    start: CommandLine, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """The record that says running, the tensors, and the record that names them."""

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    capsys.readouterr()
    with before(number, full):
        assert start("--quiet") == 1
    line = f"python -m frameworks.pytorch.scratch: error: cannot write {RECORD}: {FULL}\n"
    assert capsys.readouterr().err == line
    if number:
        assert beside()["status"] == "failed"
    else:
        require_alone()


@pytest.mark.parametrize(
    ("error", "status"),
    [(MemoryError("too large"), 1), (RequestError("not with these options"), 2)],
)
def test_a_run_that_fails_before_its_first_step_says_so_beside_it(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    failing(monkeypatch, "replicate", error)
    assert start("--quiet") == status
    found = beside()
    assert (found["status"], found["config"]["devices"]) == ("failed", 3)
    assert str(error) in found["failure"]["message"]


@pytest.mark.parametrize("error", [RequestError("not on these devices"), MemoryError("too large")])
def test_a_run_that_never_began_leaves_nothing(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failing(monkeypatch, "devices", error)
    assert start("--quiet") == getattr(error, "status", 1)
    require_alone()


def test_a_complete_run_takes_the_place_of_both(start: CommandLine) -> None:
    def fail(step: int) -> float:
        raise KeyboardInterrupt

    assert start("--quiet", loss=fail) == 130
    assert beside()["status"] == "interrupted"
    assert overtaken(RECORD) == (
        f"a later run of it was interrupted: run it again, or remove {BESIDE}"
    )
    BESIDE.write_text("{")
    assert "a later run of it has left a record that cannot be read" in overtaken(RECORD)
    assert start("--quiet") == 0
    assert written()["started"] != LONG_AGO
    assert sorted(RECORD.parent.glob("*.json")) == [RECORD]
    assert overtaken(RECORD) == ""
