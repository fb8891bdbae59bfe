"""A run that was stopped resumes from its last checkpoint, or says why it does not."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from fake_chapter import EVERY, KEPT, RECORD, CommandLine, start as start, stopping, written
from safetensors.numpy import load_file
from started import heard

from common.base.signals import ENDING
from common.records.fingerprint import source_digest
from common.records.store import read_record, write_record
from common.training.checkpoints import checkpoints_in, read_checkpoint

NAME = RECORD.stem


def end_of(start: CommandLine, *flags: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a run leaves in the end, but for what clocks tell."""
    assert start(*EVERY, *flags) == 0
    tensors = load_file(RECORD.with_suffix(".safetensors"))
    record = written()
    figures = [epoch["test_accuracy"] for epoch in record["epochs"]]
    return {"epochs": figures}, {name: values.tobytes() for name, values in tensors.items()}


@pytest.mark.parametrize("step", [3, 5])
def test_a_stopped_run_resumes_to_what_it_would_have_been(start: CommandLine, step: int) -> None:
    whole = end_of(start, "--checkpoint-dir=elsewhere")
    RECORD.unlink()
    assert start(*EVERY, loss=stopping(step)) == 143
    assert written()["status"] == "interrupted"
    assert written()["losses"] == [1 / each for each in range(1, step + 1)]
    assert end_of(start, "--resume") == whole
    (again,) = written()["resumed"]
    assert (again["step"], again["framework"], again["devices"]) == (step, "pytorch", 3)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_run_after_its_step(
    start: CommandLine, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    with heard():
        status = start("--quiet", loss=stopping(2, number))
    assert status == (130 if number == signal.SIGINT else 143)
    line = "stopped after step 2 of 7, and kept no checkpoint"
    assert capsys.readouterr().err == f"python -m frameworks.pytorch.scratch: error: {line}\n"
    assert written()["status"] == "interrupted"


def test_a_signal_that_is_ignored_ends_nothing(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert start("--quiet", loss=stopping(2, signal.SIGHUP)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_two_checkpoints_stay_and_no_parts_of_others(start: CommandLine) -> None:
    KEPT.mkdir()
    for name in (f"{NAME}-step1.safetensors", f".{NAME}-step4.json.x7f_pqrs"):
        KEPT.joinpath(name).write_text("part of a checkpoint")
    others = ("jax-scratch-3dev-step1.json", f"{NAME}-step5-copy.json", f".{NAME}-step1.json.swp")
    for name in others:
        KEPT.joinpath(name).write_text("a user's own")
    assert start(*EVERY) == 0
    assert {path.name for path in KEPT.iterdir()} == {
        *others,
        *(f"{NAME}-step{step}.{end}" for step in (6, 7) for end in ("json", "safetensors")),
    }


def test_another_framework_resumes_in_the_same_folder(start: CommandLine) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    theirs = read_checkpoint(KEPT / f"{NAME}-step3.json")
    for path in KEPT.iterdir():
        path.unlink()
    config = theirs.record.config.model_copy(update={"framework": "jax"})
    named = {"framework": "jax", "config": config, "source_sha256": source_digest("jax")}
    jax = theirs.record.model_copy(update=named)
    file = write_record(KEPT / "jax-scratch-3dev-step3.json", jax, theirs.tensors)
    assert start(*EVERY, f"--resume-from={file}") == 0
    assert (written()["resumed"][0]["framework"], written()["status"]) == ("jax", "complete")
    assert [len(read_checkpoint(path).record.losses) for path in checkpoints_in(KEPT, NAME)] == [
        *(7, 6)
    ]
    assert read_checkpoint(file).record == read_record(file)


def test_another_allreduce_and_processor_resume_from_a_file_and_the_record_says_so(
    start: CommandLine,
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    file = KEPT / f"{NAME}-step3.json"
    machine = json.loads(file.read_text())["machine"]
    edit(file, machine=machine | {"processor": "Z80"})
    flags = ["--batch-size=10", "--dtype=float64", "--allreduce=ring", f"--resume-from={file}"]
    assert start(*flags) == 0
    (again,) = written()["resumed"]
    processor = f"processor Z80 there, {machine['processor']} here"
    assert again["differences"] == ["allreduce star there, ring here", processor]
    assert written()["losses"][:3] == [1, 1 / 2, 1 / 3]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = end_of(start, "--checkpoint-dir=elsewhere")
    assert start(*EVERY, loss=stopping(5)) == 143
    damage(KEPT / f"{NAME}-step5.safetensors")
    capsys.readouterr()
    assert end_of(start, "--resume") == whole
    assert "step5.safetensors was changed after it was written" in capsys.readouterr().err
    assert written()["resumed"][0]["step"] == 4


def test_nothing_starts_again_over_damaged_checkpoints(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, loss=stopping(5)) == 143
    for path in KEPT.glob("*.safetensors"):
        damage(path)
    assert start(*EVERY, "--resume") == 2
    assert "no checkpoint in kept is whole: remove them to start over" in capsys.readouterr().err
    assert len(list(KEPT.iterdir())) == 4
