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


def test_a_full_disk_leaves_the_record_of_an_earlier_run(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    full_after(monkeypatch, 0)
    assert start("--quiet") == 1
    line = f"python -m frameworks.pytorch.scratch: error: cannot write {RECORD}: {FULL}\n"
    assert capsys.readouterr() == ("", line)
    require_alone()


def test_a_disk_that_is_full_in_the_end_leaves_an_unfinished_run(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_after(monkeypatch, 1)
    assert start("--quiet") == 1
    assert beside()["status"] == "running"


def test_tensors_that_find_no_space_fail_the_run(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("common.records.store.save_weights", save)
    assert start("--quiet") == 1
    assert f"error: cannot write {RECORD}: {FULL}\n" in capsys.readouterr().err
    assert beside()["status"] == "failed"


def test_a_run_that_fails_before_its_first_step_says_so_beside_it(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replicate(*_: object) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(FakeChapter, "replicate", replicate)
    assert start("--quiet") == 1
    assert beside()["status"] == "failed"
    assert "too large" in beside()["failure"]["message"]


def test_so_does_one_that_fails_before_it_has_left_a_record(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def devices(*_: object) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(FakeChapter, "devices", devices)
    assert start("--quiet") == 1
    assert (beside()["status"], beside()["config"]["devices"]) == ("failed", 3)


def test_what_is_refused_once_the_run_has_begun_is_no_running_run(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replicate(*_: object) -> None:
        raise RequestError("not with these options")

    monkeypatch.setattr(FakeChapter, "replicate", replicate)
    assert start("--quiet") == 2
    assert beside()["status"] == "failed"
    assert beside()["failure"]["message"] == "not with these options"


def not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> None:
        raise RunError("processes cannot meet")

    monkeypatch.setattr(FakeChapter, "launch", launch)


def test_so_does_one_whose_processes_cannot_be_launched(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_launched(monkeypatch)
    assert start("--quiet") == 1
    found = beside()
    assert (found["status"], found["failure"]["message"]) == ("failed", "processes cannot meet")
    assert (found["config"]["devices"], found["devices"]) == (3, [])


@pytest.mark.parametrize(("flags", "kind"), [([], "gpu"), (["--devices=3"], "gpu"), ([], "cpu")])
def test_without_a_number_the_devices_are_those_that_there_are(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, flags: list[str], kind: str
) -> None:
    def devices(_: object, process: Process, request: DeviceRequest) -> Devices[str]:
        assert request.count == (3 if flags else None)
        return Devices.of(kind, [f"{kind}:{index}" for index in range(3)], process)

    not_launched(monkeypatch)
    monkeypatch.setattr(FakeChapter, "devices", devices)
    monkeypatch.setattr("fake_chapter.FLAGS", FLAGS[1:])
    assert start("--quiet", *flags) == 1
    assert (beside()["status"], beside()["config"]["devices"]) == ("failed", 3)
    assert sorted(RECORD.parent.glob("*.json")) == sorted([RECORD, BESIDE])


def test_where_it_is_not_known_how_many_nothing_is_written(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(FakeChapter, "devices", fail)
    monkeypatch.setattr("fake_chapter.FLAGS", FLAGS[1:])
    assert start("--quiet") == 1
    require_alone()


@pytest.mark.parametrize("asked", ["launch", "devices"])
def test_a_refused_request_leaves_nothing(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    def refuse(*_: object) -> None:
        raise RequestError("not on these devices")

    monkeypatch.setattr(FakeChapter, asked, refuse)
    assert start("--quiet") == 2
    require_alone()


def test_a_run_that_never_began_leaves_a_name_that_another_one_holds(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_launched(monkeypatch)
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
    assert start("--quiet") == 0
    assert written()["started"] != LONG_AGO
    assert sorted(RECORD.parent.glob("*.json")) == [RECORD]
    assert overtaken(RECORD) == ""
