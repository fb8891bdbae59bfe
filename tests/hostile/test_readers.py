"""Hostile files are read or refused; a reader that does anything else is seen.

`nox -s fuzz` gives each reader a million of them, led by what of it they reach.
"""

import json
import math
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from common.base.errors import RequestError
from fuzz.seeds import Files
from fuzz.targets import DISK, TARGETS, Target
from fuzz.watch import Watch


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder for files; beside it lies one that no reader should open."""
    with TemporaryDirectory(dir=DISK) as name:
        (Path(name) / "outside.safetensors").write_bytes(b"of somebody else")
        (Path(name) / "files").mkdir()
        yield Path(name) / "files"


@pytest.fixture(scope="module")
def watch(folder: Path) -> Watch:
    return Watch(folder)


def look(target: Target, folder: Path, watch: Watch) -> str:
    """What a reader does wrong with a few hundred hostile inputs; empty if nothing."""

    @settings(
        max_examples=200,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.hostile())
    def give(files: Files) -> None:
        if wrong := target.check(files, folder, watch):
            raise AssertionError(wrong)

    try:
        give()
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_takes_good_files_and_does_no_wrong_with_hostile_ones(
    name: str, folder: Path, watch: Watch
) -> None:
    target = TARGETS[name]
    strict = replace(target, refusals=())
    assert [wrong for each in target.good() if (wrong := strict.check(each, folder, watch))] == []
    assert look(target, folder, watch) == ""


def allocates_by_the_header(folder: Path) -> None:
    with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        content = (folder / "w.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        for tensor in header.values():
            np.empty(math.prod(tensor["shape"]), np.uint8)


def leaves_its_folder(folder: Path) -> None:
    with suppress(ValueError, TypeError, LookupError, OSError, RecursionError):
        record = json.loads((folder / "run.json").read_bytes())
        (folder / record["tensors"]["file"]).read_bytes()


def unpickles(folder: Path) -> None:
    with suppress(Exception):
        pickle.loads((folder / "w.safetensors").read_bytes())


def evaluates(folder: Path) -> None:
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        eval((folder / "bench.json").read_bytes())


def loops(folder: Path) -> None:
    content, at = (folder / "messages").read_bytes(), 0
    while content[at : at + 1] != b"!":  # to the end
        at = (at + 1) % len(content)


MEMORY = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")


@pytest.mark.parametrize(
    ("name", "read", "complaint"),
    [
        pytest.param("safetensors", allocates_by_the_header, "bytes of memory", marks=MEMORY),
        ("run", leaves_its_folder, "which is not in its folder"),
        ("safetensors", unpickles, "does pickle.find_class"),
        ("bench", evaluates, "runs code made in "),
        ("messages", loops, "takes more than 0.05 s"),
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
    target = replace(TARGETS[name], read=read)
    if read is loops:
        monkeypatch.setattr("fuzz.watch.SECONDS", 0.05)
        assert complaint in target.check(target.good()[0], folder, watch)
    else:
        assert complaint in look(target, folder, watch)


def test_only_what_a_command_tells_in_a_line_may_be_raised(folder: Path, watch: Watch) -> None:
    def refuses(_: Path) -> None:
        raise RequestError("no")

    def panics(_: Path) -> None:
        raise BaseException("a panic")

    one = replace(TARGETS["safetensors"], read=refuses)
    assert one.check((b"",), folder, watch) == ""
    assert replace(one, refusals=()).check((b"",), folder, watch) == "raises RequestError: no"
    assert replace(one, read=panics).check((b"",), folder, watch) == "raises BaseException: a panic"
