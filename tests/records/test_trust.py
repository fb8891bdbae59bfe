"""Records that cannot be trusted turn the verdict red."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit, failed, judge, make, rewrite
from numpy_chapter import NumpyChapter

from common.base.errors import RunError
from common.records.record import Failure, Record, read_record, read_tensors

Spoil = Callable[[Path], object]
HANDED = {"step": 2, "started": "2030", "framework": "jax", "devices": 1, "differences": ["a", "b"]}
ELSEWHERE = "steps 1 to 2 were trained in another setup (a, b)"
FAILURE = Failure.of(OSError("worse\nmore of it")).model_dump()


def edited(**changes: Any) -> Spoil:
    """What a run would have written that was otherwise."""
    return lambda path: edit(path, **changes)


def changed(old: str, new: str) -> Spoil:
    """A record that was changed in an editor."""

    def spoil(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return spoil


def copied(*ends: str) -> Spoil:
    """Files of another run under the names of this one's."""

    def spoil(path: Path) -> None:
        for end in ends:
            shutil.copy(path.with_name("jax-scratch-1dev").with_suffix(end), path.with_suffix(end))

    return spoil


def cut(end: str) -> Spoil:
    def spoil(path: Path) -> None:
        file = path.with_suffix(end)
        file.write_bytes(file.read_bytes()[:-4])

    return spoil


def other_machine(path: Path) -> None:
    edit(path, machine=read_record(path).machine | {"processor": "Z80"})


def other_package(path: Path) -> None:
    edit(path, versions=read_record(path).versions | {"numpy": "0.9"})


def other_rate(path: Path) -> None:
    make(path.parent, "jax", NumpyChapter(), 2, lr=0.06)


def other_minibatch(path: Path) -> None:
    labels = read_tensors(path, read_record(path))["trace/labels/2"]
    rewrite(path, {"trace/labels/2": np.roll(labels, 1)})


CHANGED = "was changed after it was written"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (edited(source_sha256="0" * 64), "stale, as the code has changed since: run it again"),
        (edited(resumed=[HANDED]), f"no result of its own: {ELSEWHERE}; run it from step 1"),
        (changed('"schema": 9', '"schema": 8'), "is not a record of schema 9: schema "),
        (edited(status="running"), "the run is running, not complete"),
        (edited(status="failed", failure=FAILURE), "the run failed: OSError: worse"),
        (Path.unlink, "there is no "),
        (cut(".json"), "is not a record of schema 9"),
        (cut(".safetensors"), CHANGED),
        (lambda path: path.with_suffix(".safetensors").unlink(), "safetensors cannot be read"),
        (copied(".json", ".safetensors"), "it is the record of jax-scratch-1dev"),
        (copied(".safetensors"), CHANGED),
        (changed('"peak_memory": ', '"peak_memory": 1'), CHANGED),
        (changed('"devices": [', '"cores": 2, "devices": ['), "cores Extra inputs"),
        (changed('"epochs": null', '"epochs": 1'), "exactly one of epochs and steps"),
        (other_machine, "made elsewhere: processor is Z80, and "),
        (other_package, "made elsewhere: numpy is 0.9, and "),
        (edited(data_sha256="0" * 64), "data is 0000"),
        (other_minibatch, "minibatches is "),
        (other_rate, "lr is 0.06, and others have 0.05"),
    ],
)
def test_a_record_that_is_not_of_this_run_turns_the_verdict_red(
    results: Path, spoil: Spoil, why: str
) -> None:
    spoil(results / "float64" / "jax-scratch-2dev.json")
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert why in verdict.failures[0].note


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", sorted({*Record.model_fields} - {"sha256"}))
def test_a_field_that_was_edited_is_seen(agreeing: Path, name: str) -> None:
    path = agreeing / "jax-scratch-2dev.json"
    record = read_record(path).model_copy(update={name: "edited"})
    with pytest.raises(RunError, match=CHANGED):
        read_tensors(path, record)


def test_runs_of_each_framework_may_come_from_its_own_machine(results: Path) -> None:
    for path in (results / "float64").glob("jax-*.json"):
        other_machine(path)
        other_package(path)
    assert judge(results).passed
