"""Hostile files are read or refused; a reader that does anything else is seen.

`python -m fuzz` gives each reader a million of them, led by what of it they reach.
"""

import json
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from common.base.errors import RequestError
from common.compare.collect import load
from common.data.idx import read_idx
from common.models.weights_file import load_arrays
from common.records.store import read_record
from common.records.trust import distrust
from fuzz import __main__ as command, seeds
from fuzz.parts import joined, parted
from fuzz.plain import look
from fuzz.targets import TARGETS, check
from fuzz.watch import Watch


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder for files; beside it lies one that no reader should open."""
    with TemporaryDirectory(dir=command.MEMORY if command.MEMORY.is_dir() else None) as name:
        (Path(name) / "outside.safetensors").write_bytes(b"of somebody else")
        (Path(name) / "files").mkdir()
        yield Path(name) / "files"


@pytest.fixture(scope="module")
def watch(folder: Path) -> Watch:
    return Watch(folder)


def test_the_command_knows_every_target() -> None:
    assert tuple(TARGETS) == command.READERS


def test_without_a_name_every_reader_is_meant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fuzz(reader: str, inputs: int, *_: object) -> dict[str, Any]:
        return {"reader": reader, "inputs": inputs, "seconds": 0, "findings": []}

    monkeypatch.setattr(command, "find_spec", lambda name: name)
    monkeypatch.setattr(command, "fuzz", fuzz)
    assert command.main([f"--out={tmp_path}"]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == set(TARGETS)
    assert json.loads((tmp_path / "idx.json").read_text())["inputs"] == 1_000_000
    with pytest.raises(SystemExit, match="2"):
        command.main([f"--out={tmp_path}", "pickle"])


@pytest.mark.parametrize("name", TARGETS)
def test_no_reader_does_wrong_with_a_few_hostile_files(
    name: str, folder: Path, watch: Watch
) -> None:
    assert look(TARGETS[name], 300, 7, folder, watch) == []


def test_what_mutations_start_from_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    for dimensions in (1, 3):
        for content in seeds.idx(dimensions):
            path.write_bytes(content)
            assert read_idx(path, dimensions).ndim == dimensions
    for content in seeds.weights():
        path.write_bytes(content)
        assert load_arrays(path)
    for content in seeds.records():
        path.write_bytes(content)
        assert distrust(read_record(path)) == ""
    for content in seeds.runs():
        for name, part in zip(TARGETS["run"].files, parted(content), strict=True):
            (tmp_path / name).write_bytes(part)
        assert "test/predictions" in load(path, read_record(path)).arrays
    for content in seeds.checkpoints():
        for name, part in zip(TARGETS["checkpoint"].files, parted(content), strict=True):
            (tmp_path / name).write_bytes(part)
        TARGETS["checkpoint"].read(tmp_path)


def trusts_its_length(folder: Path) -> None:
    content = (folder / "idx").read_bytes()
    if content[:4] == b"\0\0\x08\x01":
        np.frombuffer(content, np.uint8, int.from_bytes(content[4:8], "big"), 8)


def allocates_by_the_header(folder: Path) -> None:
    with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        content = (folder / "w.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        for tensor in header.values():
            np.empty(math.prod(tensor["shape"]), np.uint8)


def allocates_by_the_length(folder: Path) -> None:
    with (folder / "w.safetensors").open("rb") as file, suppress(OverflowError):
        file.read(int.from_bytes(file.read(8), "little"))


def leaves_its_folder(folder: Path) -> None:
    with suppress(ValueError, TypeError, LookupError, OSError, RecursionError):
        record = json.loads((folder / "run.json").read_bytes())
        (folder / record["tensors"]["file"]).read_bytes()


def unpickles(folder: Path) -> None:
    with suppress(Exception):
        pickle.loads((folder / "idx").read_bytes())


def evaluates(folder: Path) -> None:
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        eval((folder / "bench.json").read_bytes())


def loops(folder: Path) -> None:
    content, at = (folder / "idx").read_bytes(), 4
    while at < len(content):  # to the end of each of its parts
        at += content[at]


@pytest.mark.parametrize(
    ("name", "read", "complaint"),
    [
        ("idx", trusts_its_length, "raises ValueError: buffer is smaller"),
        ("safetensors", allocates_by_the_header, "bytes of memory"),
        ("safetensors", allocates_by_the_length, "bytes of memory"),
        ("run", leaves_its_folder, "which is not in its folder"),
        ("idx", unpickles, "does pickle.find_class"),
        ("bench", evaluates, "runs code made in "),
        ("idx", loops, "takes more than 0.05 s"),
    ],
)
def test_a_reader_with_a_planted_bug_is_seen(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    watch: Watch,
    name: str,
    read: Callable[[Path], object],
    complaint: str,
) -> None:
    inputs = 600
    if read is loops:  # to collect garbage may take as long, and that is not to interrupt others
        inputs = 0
        monkeypatch.setattr("fuzz.watch.SECONDS", 0.05)
    found = look(replace(TARGETS[name], read=read), inputs, 7, folder, watch)
    assert any(complaint in wrong for wrong, _ in found)


def test_the_project_s_own_reader_is_seen_as_soon_as_it_trusts_its_length(
    monkeypatch: pytest.MonkeyPatch, folder: Path, watch: Watch
) -> None:
    monkeypatch.setattr("common.data.idx.PIECE", 1 << 40)
    found = look(TARGETS["idx"], 300, 7, folder, watch)
    assert any("bytes of memory" in wrong for wrong, _ in found)


def test_only_what_a_command_tells_in_a_line_may_be_raised(folder: Path, watch: Watch) -> None:
    def refuses(_: Path) -> None:
        raise RequestError("no")

    def panics(_: Path) -> None:
        raise BaseException("a panic")

    one = replace(TARGETS["safetensors"], read=refuses)
    assert check(one, b"", folder, watch) == ""
    assert check(replace(one, refusals=()), b"", folder, watch) == "raises RequestError: no"
    assert check(replace(one, read=panics), b"", folder, watch) == "raises BaseException: a panic"


def test_files_are_joined_and_parted() -> None:
    assert parted(joined(b"ab", b"c")) == [b"ab", b"c"]
    assert parted(joined(b"", b"")) == [b"", b""]
    assert parted(b"\xff\xff\xff\xffabc") == [b"abc", b""]
