"""The riddles of the chapter on parity: each is wrong as its solution says, and in nothing else."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import agreement
import numpy as np
import pytest

from common.models import nets
from common.models.initial import initial_weights
from common.models.weights_file import save_weights
from common.pairs.runs import read_run
from common.records.store import read_record, read_tensors
from notebooks.classroom import planted
from notebooks.classroom.experiment import Command, run_all
from notebooks.classroom.tables import differences
from notebooks.exercises.parity import evidence, excess, moved, riddle_1, riddle_2, riddle_3

HERE = Path(sys.executable)


def test_weights_in_another_order_are_named_with_the_order(tmp_path: Path) -> None:
    right = initial_weights(nets.LENET, 8, "float32")
    save_weights(tmp_path / "right.safetensors", right)
    save_weights(tmp_path / "wrong.safetensors", planted.channels_last(right))
    (said,) = riddle_2(tmp_path / "wrong.safetensors", tmp_path / "right.safetensors")
    assert said.startswith("fc1.weight")
    assert "16 × 50 flattened as 50 × 16" in said or "50 × 16 flattened as 16 × 50" in said


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_the_momentum_is_found_from_how_far_a_mean_has_come(steps: int) -> None:
    factor = moved(planted.SLOW, steps) / moved(nets.MOMENTUM, steps)
    assert riddle_1(factor, steps) == pytest.approx(planted.SLOW)
    assert moved(0.1, 2) == pytest.approx(0.1 + 0.9 * 0.1)


def test_the_sum_in_place_of_the_mean_leaves_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    grad = {"fc": np.array([1.0, 2.0])}
    listing = SimpleNamespace(shard_loss_and_grad=lambda params, X, y, examples: (0.25, grad))
    chapter = SimpleNamespace(listing=listing)
    monkeypatch.setattr("common.backends.loading.import_backend", lambda *names: chapter)
    planted.take_the_sum("jax")
    loss, wrong = listing.shard_loss_and_grad({}, "X", "y", examples=20)
    assert loss == 0.25
    assert list(wrong["fc"]) == [20, 40]
    assert riddle_3(wrong["fc"][1] / grad["fc"][1], 20) == 1


def test_a_variance_over_one_less_is_larger_by_as_much_as_a_run_finds() -> None:
    seen = np.random.RandomState(0).standard_normal(96)
    over_n, over_less = 1.0, 1.0
    for _ in range(2):
        over_n += nets.MOMENTUM * (seen.var() - over_n)
        over_less += nets.MOMENTUM * (seen.var(ddof=1) - over_less)
    assert excess(96, 2, float(seen.var())) == pytest.approx(over_less / over_n - 1)


SHORT = "--dataset=synthetic --train-examples=60 --test-examples=50 --batch-size=6 --steps=2"


def right_and_wrong(number: int, framework: str, folder: Path) -> tuple[Any, Any]:
    """The same run of a riddle's chapter, by the project's command and with the riddle in it."""
    chapter = planted.RIDDLES[number].chapter
    flags = [*SHORT.split(), "--devices=1", "--threads=1", "--dtype=float64"]
    flags += ["--width=4"] if chapter == "concise" else []
    commands = {
        "right": ["-m", f"frameworks.{framework}.{chapter}"],
        "wrong": ["-m", "notebooks.classroom.planted", str(number), framework, chapter],
    }
    run_all(
        [
            Command(name, HERE, [*command, *flags, f"--out={folder / name}"])
            for name, command in commands.items()
        ]
    )
    record = f"{framework}-{chapter}-1dev.json"
    return read_run(folder / "right" / record), read_run(folder / "wrong" / record)


def test_the_first_riddle_moves_running_statistics_alone(framework: str, tmp_path: Path) -> None:
    right, wrong = right_and_wrong(1, framework, tmp_path)
    off = {row.array: row.factor for row in differences(wrong, right)}
    assert {name.rpartition(".")[2] for name in off} == {
        *("running_mean", "running_var"),
        "logits/after",
    }
    assert riddle_1(off["weights/bn1.running_mean"], 2) == pytest.approx(planted.SLOW, rel=0.1)


def test_the_third_riddle_is_a_factor_in_every_gradient(framework: str, tmp_path: Path) -> None:
    right, wrong = right_and_wrong(3, framework, tmp_path)
    rows = [row for row in differences(wrong, right) if row.array.startswith("gradients/")]
    assert len(rows) == 8
    assert [row.factor for row in rows] == pytest.approx([6] * 8)
    assert not any(row.array == "logits/before" for row in differences(wrong, right))


def test_a_planted_run_takes_the_place_of_the_right_one(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Command] = []
    monkeypatch.setattr(planted, "interpreters", lambda: dict.fromkeys(("pytorch", "jax"), HERE))
    monkeypatch.setattr(planted, "run_all", seen.extend)
    save_weights(tmp_path / "lenet.safetensors", initial_weights(nets.LENET, 8, "float32"))
    folder = planted.plant(3, results, tmp_path / "lenet.safetensors")
    assert len(list((folder / "float64").glob("*.json"))) == 12
    (command,) = seen
    assert command.arguments[:5] == ["-m", "notebooks.classroom.planted", "3", "jax", "scratch"]
    assert f"--out={folder / 'float64'}" in command.arguments
    assert "jax" not in command.framework  # which is printed


def test_the_evidence_names_the_wrong_run(results: Path) -> None:
    path = results / "float64" / "mxnet-scratch-1dev.json"
    tensors = read_tensors(path, read_record(path))
    names = [f"gradients/{name}" for name in nets.LENET]
    agreement.rewrite(path, {name: 10 * tensors[name] for name in names})
    named, first, *told = evidence(results)
    assert named == "mxnet"
    assert "first gradient is off" in first
    assert any("times 10" in each for each in told)
