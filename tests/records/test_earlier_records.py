"""A run that is not complete never takes the place of one that is: it goes beside it."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from fake_chapter import FLAGS, RECORD, CommandLine, FakeChapter, full_after, written

from common.backends.devices import DeviceRequest, Devices, Process
from common.base.errors import RequestError, RunError
from common.base.locks import held
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


@pytest.mark.parametrize("texts", [0, 1])
def test_a_full_disk_leaves_the_record_of_an_earlier_run(
    start: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    texts: int,
) -> None:
    capsys.readouterr()
    full_after(monkeypatch, texts)
    assert start("--quiet") == 1
    line = f"python -m frameworks.pytorch.scratch: error: cannot write {RECORD}: {FULL}\n"
    assert capsys.readouterr().err == line
    if texts:
        assert beside()["status"] == "running"
    else:
        require_alone()


def test_tensors_that_find_no_space_fail_the_run(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("common.records.store.save_weights", save)
    assert start("--quiet") == 1
    assert f"error: cannot write {RECORD}: {FULL}\n" in capsys.readouterr().err
    assert beside()["status"] == "failed"


@pytest.mark.parametrize(
    ("function", "error", "status"),
    [
        ("replicate", MemoryError("too large"), 1),
        ("replicate", RequestError("not with these options"), 2),
        ("devices", MemoryError("too large"), 1),
        ("launch", RunError("processes cannot meet"), 1),
    ],
)
def test_a_run_that_fails_before_its_first_step_says_so_beside_it(
    start: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    error: Exception,
    status: int,
) -> None:
    failing(monkeypatch, function, error)
    assert start("--quiet") == status
    found = beside()
    assert (found["status"], found["config"]["devices"]) == ("failed", 3)
    assert str(error) in found["failure"]["message"]


def test_without_a_number_the_devices_are_those_that_there_are(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def devices(_: object, process: Process, request: DeviceRequest) -> Devices[str]:
        assert request.count is None
        return Devices.of("gpu", [f"gpu:{index}" for index in range(3)], process)

    failing(monkeypatch, "launch", RunError("processes cannot meet"))
    monkeypatch.setattr(FakeChapter, "devices", devices)
    monkeypatch.setattr("fake_chapter.FLAGS", FLAGS[1:])
    assert start("--quiet") == 1
    assert (beside()["status"], beside()["config"]["devices"]) == ("failed", 3)


def test_where_it_is_not_known_how_many_nothing_is_written(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "devices", MemoryError("too large"))
    monkeypatch.setattr("fake_chapter.FLAGS", FLAGS[1:])
    assert start("--quiet") == 1
    require_alone()


@pytest.mark.parametrize("function", ["launch", "devices"])
def test_a_refused_request_leaves_nothing(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    failing(monkeypatch, function, RequestError("not on these devices"))
    assert start("--quiet") == 2
    require_alone()


def test_a_run_that_never_began_leaves_a_name_that_another_one_holds(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "launch", RunError("processes cannot meet"))
    with held(RECORD.parent, RECORD.stem):
        assert start("--quiet") == 1
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
