"""A stopped run resumes from its last checkpoint, or says why not."""

import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit
from fake_chapter import (
    EVERY,
    KEPT,
    RECORD,
    CommandLine,
    FakeChapter,
    start as start,
    stopping,
    written,
)
from numpy_chapter import NumpyConcise, copied
from started import with_signals

from common.base.arrays import Weights
from common.base.errors import RunError
from common.base.files import held
from common.base.signals import ENDING
from common.records.record import read_record, require_own, source_digest, write_record
from common.training.checkpoints import checkpoints_in, read_checkpoint

NAME = RECORD.stem


def of_jax(path: Path, **changes: Any) -> Path:
    """The checkpoint as JAX would have written it."""
    found, file = read_checkpoint(path), Path("given/jax.json")
    config = found.record.config.model_copy(update={"framework": "jax"})
    changes |= {"framework": "jax", "config": config, "source_sha256": source_digest("jax")}
    write_record(file, found.record.model_copy(update=changes), found.tensors)
    return file


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_run_after_its_step(start: CommandLine, number: signal.Signals) -> None:
    with with_signals():
        status = start("--quiet", loss=stopping(2, number))
    assert status == (130 if number == signal.SIGINT else 143)
    line = "stopped after step 2 of 7, and kept no checkpoint"
    assert start.printed().err == f"python -m frameworks.pytorch.scratch: error: {line}\n"
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
    for name in (f"{NAME}-step1.safetensors", f".{NAME}-step4.json.07f3ab9c"):
        KEPT.joinpath(name).write_text("part of a checkpoint")
    others = ("jax-scratch-3dev-step1.json", f"{NAME}-step5-copy.json", f".{NAME}-step1.json.swp")
    for name in others:
        KEPT.joinpath(name).write_text("a user's own")
    assert start(*EVERY) == 0
    assert {path.name for path in KEPT.iterdir()} == {
        *others,
        *(f"{NAME}-step{step}.{end}" for step in (6, 7) for end in ("json", "safetensors")),
    }


def test_a_file_of_another_framework_and_setup_resumes_and_the_record_says_so(
    start: CommandLine,
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    machine, processor = written()["machine"], written()["machine"]["processor"]
    hosts = {"machine": machine | {"processor": "Z80"}, "devices": ["n1 0", "n1 1", "n2 0"]}
    file = of_jax(KEPT / f"{NAME}-step3.json", **hosts)
    flags = ["--checkpoint-dir=other", "--allreduce=ring", f"--resume-from={file}"]
    assert start(*EVERY, *flags) == 0
    (again,) = written()["resumed"]
    assert (again["framework"], written()["losses"][:3]) == ("jax", [1, 1 / 2, 1 / 3])
    # The first of its epochs is no result of this setup, in seconds nor in numbers.
    record = read_record(RECORD)
    differences = ", ".join(again["differences"])
    assert record.another_setup() == f"steps 1 to 3 were trained in another setup ({differences})"
    assert [epoch.epoch for epoch in record.timed_epochs()] == [2, 3]
    said = start.printed()
    assert re.search(
        r"sec/epoch on \[.+\]; steps 1 to 3 were trained in another setup \(fr", said.out
    )
    with pytest.raises(RunError, match=r"no result of its own: steps 1 to 3 .*run it from step 1"):
        require_own(RECORD, record)
    assert again["differences"] == [
        "framework jax there, pytorch here",
        "devices 2 + 1 there, 3 here",
        "allreduce star there, ring here",
        f"processor Z80 there, {processor} here",
    ]
    assert f"it may round otherwise: {again['differences'][0]}, " in said.err
    kept = [read_checkpoint(path).record for path in checkpoints_in(Path("other"), NAME)]
    assert [len(record.losses) for record in kept] == [7, 6]


def test_what_is_finished_is_kept_and_is_no_result_of_another_setup(start: CommandLine) -> None:
    assert start(*EVERY) == 0
    whole, tensors = written(), RECORD.with_suffix(".safetensors").read_bytes()
    (KEPT / f"{NAME}-step6.json").unlink()
    last, line = KEPT / f"{NAME}-step7.json", start.printed().out
    RECORD.unlink()  # as if it was killed before its end
    assert start(*EVERY, "--resume") == 0
    said = start.printed()
    assert f"nothing is left to do: {last} has all 7 steps\n" in said.err
    assert said.out == line
    changes = {"sha256", "peak_memory"}
    assert {k: v for k, v in written().items() if k not in changes} == {
        k: v for k, v in whole.items() if k not in changes
    }
    assert written()["peak_memory"] >= whole["peak_memory"]
    assert RECORD.with_suffix(".safetensors").read_bytes() == tensors
    for file, flag, difference in (
        (of_jax(last), "--quiet", "framework jax there, pytorch here"),
        (last, "--devices=2", "devices 3 there, 2 here"),
        (last, "--allreduce=ring", "allreduce star there, ring here"),
    ):
        assert start(*EVERY[2:], flag, "--out=other", f"--resume-from={file}") == 2
        line = f"{file} has all 7 steps, trained in another setup: {difference}; to train here, "
        assert f"nothing is left to do: {line}start over" in start.printed().err
        assert not list(Path("other").glob("*.json"))


def test_a_checkpoint_has_the_state_after_its_step(start: CommandLine) -> None:
    class Late(FakeChapter):
        def train_batch(self, *arguments: Any) -> float:
            self.before = copied(self.replicas[0])
            return super().train_batch(*arguments)

        def save(self) -> Weights:
            return self.before

    assert start(*EVERY, "--quiet", chapter=Late()) == 1
    assert "conv1.weight in the checkpoint is not that after step 2" in start.printed().err
    assert not list(KEPT.iterdir())


def test_other_threads_and_packages_may_resume_and_other_devices_start_anew(
    start: CommandLine,
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    changed(versions={"numpy": "0"})()
    start.printed()
    assert start(*EVERY, "--resume", "--devices=2") == 0
    assert f"no checkpoint of {NAME.replace('3', '2')} in kept: starting at" in start.printed().err
    assert start(*EVERY, "--resume", "--threads=1000") == 0
    differences = " ".join(written()["resumed"][0]["differences"])
    assert re.search(r"^threads \d+ there, 1000 here .*\bnumpy 0 there, ", differences)


def test_with_batch_norm_per_device_the_number_of_devices_decides(start: CommandLine) -> None:
    concise = partial(start, *EVERY, "--width=1", "--steps=2", "--wrapper=ddp", name="concise")
    assert concise(chapter=NumpyConcise()) == 0
    start.printed()
    (file,) = KEPT.glob("*-step2.json")
    flags = f"--resume-from={file}", "--checkpoint-dir=other", "--devices=2"
    assert concise(*flags, chapter=NumpyConcise()) == 2
    assert "computes other numbers: shards 3 there, 2 here" in start.printed().err


def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(start: CommandLine) -> None:
    def damage(step: int) -> None:
        path = KEPT / f"{NAME}-step{step}.safetensors"
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert start(*EVERY, "--checkpoint-dir=elsewhere") == 0
    whole = RECORD.with_suffix(".safetensors").read_bytes()
    assert start(*EVERY, loss=stopping(5)) == 143
    damage(5)
    start.printed()
    assert start(*EVERY, "--resume") == 0
    assert RECORD.with_suffix(".safetensors").read_bytes() == whole
    assert written()["resumed"][0]["step"] == 4
    assert "step5.safetensors was changed after it was" in start.printed().err
    for step in (6, 7):
        damage(step)
    assert start(*EVERY, "--resume") == 2
    assert "there is no checkpoint to resume from: kept/" in start.printed().err
    assert len(list(KEPT.iterdir())) == 4


def changed(**changes: Any) -> Callable[[], object]:
    """Lets the checkpoint be one of another run."""
    return lambda: edit(KEPT / f"{NAME}-step3.json", **changes)


@pytest.mark.parametrize(
    ("spoil", "flags", "why"),
    [
        (Path, [], "step3.json is there already: --resume continues from it"),
        (Path, ["--resume", "--lr=0.5"], "computes other numbers: lr 0.2 there, 0.5 here"),
        (changed(initial_weights_sha256="0"), ["--resume"], "numbers: initial weights 0 there, "),
        (changed(source_sha256="0"), ["--resume"], "numbers: code stale there, current here"),
        (Path, ["--resume-from=nowhere"], "checkpoint to resume from: nowhere.json cannot be read"),
        (Path, [f"--resume-from={RECORD}"], "no checkpoint to resume from: the run is interrupted"),
    ],
)
def test_what_a_run_may_not_resume_from_is_refused_and_stays(
    start: CommandLine, spoil: Callable[[], object], flags: list[str], why: str
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    spoil()
    files = {path: path.read_bytes() for path in (RECORD, *KEPT.iterdir())}
    kept = "elsewhere" if "from" in "".join(flags) else "kept"
    start.printed()
    assert start(*EVERY, "--quiet", f"--checkpoint-dir={kept}", *flags) == 2
    (line,) = start.printed().err.splitlines()
    assert why in line
    assert {path: path.read_bytes() for path in (RECORD, *KEPT.iterdir())} == files


@pytest.mark.parametrize(
    ("of_loss", "said"),
    [(True, "the loss of step 7 is nan"), (False, "conv1.bias is not finite after step 7")],
)
def test_nan_ends_a_run_and_is_in_no_checkpoint(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, of_loss: bool, said: str
) -> None:
    """The last update has no loss to show it."""
    train_batch = FakeChapter.train_batch

    def spoiled(self: FakeChapter, *arguments: Any) -> float:
        loss = train_batch(self, *arguments)
        if len(self.batches) < 7:
            return loss
        for replica in self.replicas:
            replica["conv1.bias"][0] = np.nan
        return np.nan if of_loss else loss

    monkeypatch.setattr(FakeChapter, "train_batch", spoiled)
    assert start(*EVERY, "--quiet") == 1
    assert f"{said}: try a smaller --lr" in start.printed().err
    assert len(read_checkpoint(checkpoints_in(KEPT, NAME)[0]).record.losses) == 6
    assert (written()["status"], written()["failure"]["step"]) == ("failed", 7)


def test_two_runs_do_not_write_to_one_folder_at_a_time(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.training.run.held", partial(held, timeout=0.2))
    with held(KEPT, NAME):
        assert start(*EVERY, "--quiet") == 2
    line = f"another run is writing {NAME} in kept: wait for it, or choose another folder"
    assert start.printed().err == f"python -m frameworks.pytorch.scratch: error: {line}\n"
