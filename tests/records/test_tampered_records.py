"""Records and tensors that are not what a run wrote are refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_chapter import RECORD, CommandLine

from common.base.errors import RunError
from common.records.store import read_record, read_tensors


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


def tensor_byte(path: Path) -> None:
    content = bytearray(path.with_suffix(".safetensors").read_bytes())
    content[-1] ^= 1
    path.with_suffix(".safetensors").write_bytes(content)


def no_tensors(path: Path) -> None:
    path.with_suffix(".safetensors").unlink()


def tensors_elsewhere(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_bytes(path.with_suffix(".safetensors").read_bytes())
    path.write_text(path.read_text().replace(path.stem + ".safetensors", "../elsewhere"))


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        (tensor_byte, "is not the file that .* describes"),
        (no_tensors, "cannot be read"),
        (tensors_elsewhere, "elsewhere cannot be read"),
    ],
)
def test_tensors_that_are_not_the_runs_own_are_refused(
    start: CommandLine, tamper: Callable[[Path], None], complaint: str
) -> None:
    start()
    tamper(RECORD)
    with pytest.raises(RunError, match=complaint):
        read_tensors(RECORD, read_record(RECORD))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"schema": 6', '"schema": 5', "schema"),
        ('"status": "complete"', '"status": "fine"', "status"),
        ('"losses": [', '"losses": [NaN, ', "losses"),
        ('"devices": [', '"cores": 2, "devices": [', "cores"),
        ('"started"', '"begun"', "started"),
        ("{", "", "JSON"),
    ],
)
def test_a_record_of_another_form_is_refused(
    start: CommandLine, old: str, new: str, complaint: str
) -> None:
    start()
    text = RECORD.read_text(encoding="utf-8")
    assert old in text
    RECORD.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RunError, match=f"{RECORD} is not a record of schema 6: .*{complaint}"):
        read_record(RECORD)
    RECORD.write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=f"{RECORD} cannot be read"):
        read_record(RECORD)
