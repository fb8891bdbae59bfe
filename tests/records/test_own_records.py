"""Records of one's own: compared wherever they come from, if they can be trusted."""

from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from paired_runs import compared, configure, failed

from common.base.errors import RunError
from common.compare.checks import Run
from common.pairs.runs import compare_runs, read_run
from common.records.store import read_record, read_tensors, write_record


def rename(path: Path, **names: str) -> None:
    """Gives a record another framework or chapter, also in its configuration."""
    configure(path, **names)
    edit(path, **names)


def test_runs_made_elsewhere_are_compared_with_a_note(ours: Path, theirs: Path) -> None:
    edit(ours, source_sha256="0" * 64)
    rename(theirs, framework="/etc")
    verdict = compared(ours, theirs)
    assert verdict.passed
    assert verdict.notes[1::2] == [
        "the first was made by other code than is here",
        "the second was made by other code than is here",
    ]


def test_a_chapter_that_is_not_known_is_refused(ours: Path) -> None:
    rename(ours, chapter="vgg")
    with pytest.raises(RunError, match=r"config\.options .*the chapter vgg is not known here"):
        read_run(ours)


def test_an_array_that_neither_has_is_named(ours: Path, theirs: Path) -> None:
    runs = [read_run(path) for path in (ours, theirs)]
    bare = [
        Run(run.record, {k: v for k, v in run.arrays.items() if "gradients" not in k})
        for run in runs
    ]
    (missing,) = failed(compare_runs(bare[0], bare[1], 1e-10))
    assert (missing.array, missing.note) == ("gradients/", "is in neither of both")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "running"}, "running, not complete"),
        ({"devices": []}, "ran on 0 devices, and 1 were asked for"),
        ({"framework": "jax"}, "is of jax scratch, its configuration of another"),
        ({"losses": []}, "has 0 losses, of 4"),
        ({"losses": [1.0] * 5}, "has 5 losses, of 4"),
        ({"epochs": [], "losses": []}, "has 0 losses, of 4"),
        ({"epochs": []}, "has the figures of 0 epochs, of 1"),
        ({"tensors": None}, "names no tensors"),
        ({"tensors": {"file": "a\0b", "sha256": ""}}, "cannot be read: embedded null byte"),
        ({"tensors": {"file": "..", "sha256": ""}}, "cannot be read"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused(
    ours: Path, changes: dict[str, Any], why: str
) -> None:
    edit(ours, **changes)
    with pytest.raises(RunError, match=why):
        read_run(ours)


def test_tensors_that_lack_one_of_the_nets_are_refused(ours: Path) -> None:
    record = read_record(ours)
    tensors = read_tensors(ours, record)
    for name in ("gradients/fc2.bias", "weights/conv1.weight", "logits/after"):
        write_record(ours.parent, record, {k: v for k, v in tensors.items() if k != name})
        with pytest.raises(RunError, match=f"its tensors lack {name}"):
            read_run(ours)
