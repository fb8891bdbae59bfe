"""What a run leaves behind and says at its end, with a chapter that needs no framework."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fake_chapter import RECORD, CommandLine, written
from stored import save_bfloat16

from common.backends.driver import Card, Driver
from common.base.errors import RunError
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import digest, load_weights
from common.records import new
from common.records.record import Epoch
from common.records.store import read_record, read_tensors
from common.training.reporter import closing_line

CLOSING = r"test acc: \d\.\d\d, \d+\.\d sec/epoch on \[cpu:0, cpu:1, cpu:2\]\n"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


def test_a_record_has_the_names_that_others_read(start: CommandLine) -> None:
    assert start("--seed=3") == 0
    record = written()
    assert record["schema"] == 6
    assert (record["framework"], record["chapter"]) == ("pytorch", "scratch")
    assert record["status"] == "complete"
    assert record["devices"] == ["cpu:0", "cpu:1", "cpu:2"]
    assert record["config"]["steps"] == 7
    assert record["config"]["epochs"] is None
    assert record["config"]["seed"] == 3
    assert record["versions"]["numpy"] == np.__version__
    assert record["losses"] == [1 / step for step in range(1, 8)]
    assert [epoch["epoch"] for epoch in record["epochs"]] == [1, 2]
    for epoch in record["epochs"]:
        assert 0 <= epoch["test_accuracy"] <= 1
        assert epoch["images_per_second"] * epoch["seconds"] == pytest.approx(
            30 if epoch["epoch"] == 1 else 24
        )
    assert record["data"]["name"] == "synthetic"
    assert record["initial_weights_sha256"] == digest(initial_weights(LENET, 3, "float32"))
    assert record["peak_memory"] > 1_000_000


def test_a_record_and_its_tensors_can_be_read_again(start: CommandLine) -> None:
    start("--lr=0.5", "--seed=0")
    record = read_record(RECORD)
    assert json.loads(record.model_dump_json(by_alias=True)) == written()
    tensors = read_tensors(RECORD, record)
    named = {f"{kind}/{name}" for kind in ("gradients", "weights") for name in LENET}
    others = {"logits/before", "logits/after", "probe/images", "test/labels", "test/predictions"}
    assert {name for name in tensors if not name.startswith("trace/")} == named | others
    for name, values in initial_weights(LENET, 0, "float32").items():
        assert np.allclose(tensors[f"weights/{name}"], values + 7 * 0.5)
    assert sorted(RECORD.parent.iterdir()) == [RECORD, RECORD.with_suffix(".safetensors")]


def test_the_record_says_running_until_it_is_complete(start: CommandLine) -> None:
    seen = []

    def watch(step: int) -> float:
        seen.append(written())
        return 1.0

    assert start(loss=watch) == 0
    assert [each["status"] for each in seen] == ["running"] * 7
    assert not any(each["losses"] or each["tensors"] for each in seen)
    assert written()["status"] == "complete"


@pytest.mark.parametrize(
    ("failure", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("no such kernel\nwith details"), 1, "ValueError: no such kernel"),
        (RunError("replicas diverge"), 1, "replicas diverge"),
    ],
)
def test_a_run_that_ends_early_has_failed_and_says_why(
    start: CommandLine,
    capsys: pytest.CaptureFixture[str],
    failure: BaseException,
    status: int,
    line: str,
) -> None:
    def fail(step: int) -> float:
        raise failure

    assert start("--quiet", "--save-weights=w", loss=fail) == status
    assert capsys.readouterr() == ("", f"python -m frameworks.pytorch.scratch: error: {line}\n")
    if status == 1:
        assert written()["status"] == "failed"
        assert type(failure).__name__ in written()["failure"]["traceback"]
        assert written()["failure"]["message"] == line
    else:
        assert (written()["status"], written()["failure"]) == ("interrupted", None)
    with pytest.raises(RunError, match="names no tensors"):
        read_tensors(RECORD, read_record(RECORD))
    assert not Path("w").exists()


def test_saved_weights_are_the_final_ones_by_canonical_names(start: CommandLine) -> None:
    assert start("--lr=0.5", "--save-weights=far/w.safetensors") == 0
    trained = load_weights(Path("far/w.safetensors"), LENET, "float32")
    assert all((trained[name] == 3.5).all() for name in LENET if name.endswith("bias"))
    assert start("--lr=0.5", "--init-weights=far/w.safetensors") == 0
    assert written()["initial_weights_sha256"] == digest(trained)
    assert written()["config"]["init_weights"] == "far/w.safetensors"


def test_initial_weights_in_bfloat16_are_read_as_float32_and_said(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    save_bfloat16(Path("w"), {k: v + 1 for k, v in initial_weights(LENET, 0, "float32").items()})
    assert start("--init-weights=w") == 0
    assert "w has bfloat16, read as float32: conv1.bias, conv1.weight, " in capsys.readouterr().err


def test_progress_goes_to_standard_error_and_the_closing_line_alone_to_output(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("--quiet") == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(CLOSING, out)
    assert err == ""
    assert start() == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(CLOSING, out)
    introduction, first, second = err.splitlines()
    assert "7 steps of 30 synthetic images, batch 8, lr 0.2, float32" in introduction
    assert first.startswith("epoch 1/2: loss 0.521, test acc ")
    assert second.startswith("epoch 2/2: loss 0.170, test acc ")


def test_the_closing_line_is_the_books() -> None:
    epochs = [
        Epoch(epoch=i, steps=1, test_accuracy=accuracy, seconds=seconds, images_per_second=1)
        for i, accuracy, seconds in [(1, 0.5, 2.0), (2, 0.838, 3.04)]
    ]
    line = closing_line(epochs, ["cpu:0", "cpu:1"])
    assert line == "test acc: 0.84, 2.5 sec/epoch on [cpu:0, cpu:1]"


def test_gpus_that_a_run_hides_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(visible: str) -> Driver:
        return Driver("1.2", (Card("NVIDIA A100"),) * len(visible.split(",")))

    monkeypatch.setattr(new, "VISIBLE", "0,1")
    monkeypatch.setattr(new, "find_driver", find)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert new.gpus_here() == {"gpus": "2 x NVIDIA A100", "driver": "1.2"}
