"""The record and closing line of a run, with a chapter in NumPy."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fake_chapter import RECORD, CommandLine, start as start, written
from stored import save_bfloat16

from common.base.errors import RunError
from common.models.nets import LENET
from common.models.weights_file import digest, initial_weights, load_weights
from common.records.record import read_record, read_tensors
from common.records.trace import expected_arrays

CLOSING = r"test acc: \d\.\d\d, \d+\.\d sec/epoch on \[cpu:0, cpu:1, cpu:2\]\n"


def test_a_record_says_running_first_and_has_the_names_that_others_read(start: CommandLine) -> None:
    seen = []

    def watch(step: int) -> float:
        seen.append((written()["status"], written()["losses"]))
        return 1 / step

    assert start("--seed=3", "--lr=0.5", loss=watch) == 0
    assert seen == [("running", [])] * 7
    record = written()
    expected = {"schema": 9, "framework": "pytorch", "chapter": "scratch", "status": "complete"}
    assert expected.items() <= record.items()
    assert record["devices"] == ["cpu:0", "cpu:1", "cpu:2"]
    settings = {"steps": 7, "epochs": None, "seed": 3, "dataset": "synthetic"}
    assert settings.items() <= record["config"].items()
    assert record["versions"]["numpy"] == np.__version__
    assert record["losses"] == [1 / step for step in range(1, 8)]
    for number, (epoch, images) in enumerate(zip(record["epochs"], (30, 24), strict=True), start=1):
        assert epoch["epoch"] == number
        assert epoch["images_per_second"] * epoch["seconds"] == pytest.approx(images)
    assert record["initial_weights_sha256"] == digest(initial_weights(LENET, 3, "float32"))
    assert record["peak_memory"] > 1_000_000
    found = read_record(RECORD)
    assert json.loads(found.model_dump_json(by_alias=True)) == record
    tensors = read_tensors(RECORD, found)
    assert tensors.keys() == expected_arrays(found).keys() - {"losses"}
    for name, values in initial_weights(LENET, 3, "float32").items():
        assert np.allclose(tensors[f"weights/{name}"], values + 7 * 0.5)
    assert sorted(RECORD.parent.iterdir()) == [RECORD, RECORD.with_suffix(".safetensors")]


@pytest.mark.parametrize(
    ("failure", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("no such kernel\nwith details"), 1, "ValueError: no such kernel"),
        (RunError("replicas diverge"), 1, "replicas diverge"),
    ],
)
def test_a_run_that_ends_early_has_failed_and_says_why(
    start: CommandLine, failure: BaseException, status: int, line: str
) -> None:
    def fail(step: int) -> float:
        raise failure

    assert start("--quiet", "--save-weights=w", loss=fail) == status
    assert start.printed() == ("", f"python -m frameworks.pytorch.scratch: error: {line}\n")
    if status == 1:
        assert written()["status"] == "failed"
        assert type(failure).__name__ in written()["failure"]["traceback"]
        assert written()["failure"]["message"] == line
    else:
        assert (written()["status"], written()["failure"]) == ("interrupted", None)
    assert not Path("w").exists()


def test_weights_are_not_saved_in_the_place_of_the_record(start: CommandLine) -> None:
    Path("w").symlink_to(RECORD)
    assert start("--save-weights=w") == 2
    assert "--save-weights w is a file of --out" in start.printed().err
    assert not RECORD.exists()


def test_saved_weights_are_the_final_ones_and_start_another_run(start: CommandLine) -> None:
    assert start("--lr=0.5", "--save-weights=far/w.safetensors") == 0
    trained = load_weights(Path("far/w.safetensors"), LENET, "float32")
    assert all((trained[name] == 3.5).all() for name in LENET if name.endswith("bias"))
    assert start("--lr=0.5", "--init-weights=far/w.safetensors") == 0
    assert written()["initial_weights_sha256"] == digest(trained)
    assert written()["config"]["init_weights"] == "far/w.safetensors"
    save_bfloat16(Path("w"), trained)
    assert start("--init-weights=w") == 0
    assert "w has bfloat16, read as float32: conv1.bias, conv1.weight, " in start.printed().err


def test_progress_goes_to_standard_error_and_the_closing_line_alone_to_output(
    start: CommandLine,
) -> None:
    for quiet in (["--quiet"], []):
        assert start(*quiet) == 0
        out, err = start.printed()
        assert re.fullmatch(CLOSING, out)
        assert (err == "") == bool(quiet)
    introduction, first, second = err.splitlines()
    assert "7 steps of 30 synthetic images, batch 8, lr 0.2, float32" in introduction
    assert first.startswith("epoch 1/2: loss 0.521, test acc ")
    assert second.startswith("epoch 2/2: loss 0.170, test acc ")
