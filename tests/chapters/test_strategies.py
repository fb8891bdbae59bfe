"""Every way to split, in the framework under test, against NumPy on one device."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import OneDevice
from scratch_steps import MOMENTUM, RATES, batches, far, start

from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.parallel.strategies import OF_ANY_NET
from common.records.record import read_record
from common.training.cli import main

LIMIT = 1e-12
FURTHER = {
    "gpipe": StrategiesOptions("pipeline", schedule="gpipe", microbatches=4, depth=1),
    "naive": StrategiesOptions("pipeline", schedule="naive", microbatches=2, stages=(2, 1, 1)),
    "zb1": StrategiesOptions("pipeline", schedule="zb1", microbatches=4, depth=1),
    "uneven": StrategiesOptions("tensor", microbatches=2, depth=1),
}
CASES = {name: StrategiesOptions(name, microbatches=4) for name in OF_ANY_NET} | FURTHER
MESHES = ("pipeline", "zb1", "tensor", "zero3")
RUNS = [*((name, 1) for name in CASES), *((name, 2) for name in MESHES)]
"""Cases on three devices; on four, a mesh of two rows."""


def require_same(trainer: Any, right: OneDevice) -> None:
    saved = trainer.save()
    assert far({name: saved[name] for name in right.weights}, right.weights) < LIMIT
    momentum = {name: saved[f"momentum/{name}"] for name in right.velocity}
    assert far(momentum, right.velocity) < LIMIT


@pytest.mark.parametrize(("name", "rows"), RUNS)
def test_devices_do_what_one_does_and_send_and_keep_what_the_plan_says(
    strategies: Any, all_devices: Sequence[Any], name: str, rows: int
) -> None:
    """A run that is resumed before its last step has the same bits."""
    options, devices = replace(CASES[name], replicas=rows), all_devices[: 2 + rows]
    weights = start("float64", options.shapes())
    trainer = strategies.trainer(weights, devices, options)
    right = OneDevice("strategies", weights, MOMENTUM)
    steps = [*batches(2, 11, "float64"), *batches(1, 2, "float64")]  # one device has no example
    gradients = trainer.gradients(*steps[0])
    assert far(gradients, right.gradients(*steps[0])) < LIMIT
    for (X, y), lr in zip(steps, RATES, strict=False):
        saved = trainer.save()
        loss = trainer.train_batch(X, y, lr)
        assert float(loss) == pytest.approx(right.step(X, y, lr), rel=1e-12)
        counted, events = trainer.usage(len(y))
        assert counted == options.usage(2 + rows, len(y), 8)
    if options.strategy == "pipeline" and rows == 1:
        passes = options.plan(3).passes(min(options.microbatches, len(y)))
        expected = [(p.stage, p.kind, p.microbatch) for p in passes]
        assert [(e.device, e.what, e.microbatch) for e in events] == expected
        assert all(0 <= e.begin <= e.end for e in events)
    require_same(trainer, right)
    again, whole = strategies.trainer(weights, devices, options), trainer.save()
    again.restore(saved)
    again.train_batch(X, y, lr)
    assert [k for k, v in again.save().items() if v.tobytes() != whole[k].tobytes()] == []
    for count in (2, 7):
        X = steps[0][0][:count]
        logits = trainer.predict(X)
        np.testing.assert_allclose(logits, right.logits(X), rtol=0, atol=1e-12)


def test_what_one_strategy_has_saved_every_other_one_resumes(
    strategies: Any, all_devices: Sequence[Any]
) -> None:
    weights = start("float64")
    right, saved = OneDevice("strategies", weights, MOMENTUM), {**weights}
    names = ["data", *OF_ANY_NET]
    for name, (X, y) in zip(names, batches(len(names), 11, "float64"), strict=True):
        options, devices = StrategiesOptions(name, microbatches=2), all_devices[:2]
        trainer = strategies.trainer(start("float64", options.shapes()), devices, options)
        trainer.restore(saved)
        trainer.train_batch(X, y, 0.1)
        right.step(X, y, 0.1)
        require_same(trainer, right)
        saved = trainer.save()


def test_a_part_that_has_other_bits_on_another_device_is_named(
    strategies: Any, all_devices: Sequence[Any]
) -> None:
    options, devices = StrategiesOptions("tensor"), all_devices[:2]
    trainer = strategies.trainer(start("float64", options.shapes()), devices, options)
    params = trainer.params[1]
    params["fc2.bias"] = params["fc2.bias"] + 1
    params["conv1.bias"] = 2 * params["conv1.bias"]  # a slice of its own
    with pytest.raises(RunError, match=r"fc2\.bias on device 1"):
        trainer.export()


@pytest.mark.only("pytorch")
def test_a_run_without_momentum_resumes(framework: str, tmp_path: Path) -> None:
    flags = ["--momentum=0", "--dataset=synthetic", "--train-examples=20", "--test-examples=20"]
    flags += ["--batch-size=10", "--device-kind=cpu", "--devices=1", f"--out={tmp_path}"]
    flags += ["--epochs=2", "--quiet", f"--checkpoint-dir={tmp_path}", "--checkpoint-every=3"]
    assert main(framework, "strategies", flags) == 0
    for last in tmp_path.glob("*-step4.*"):
        last.unlink()
    assert main(framework, "strategies", [*flags, "--resume"]) == 0
    (path,) = tmp_path.glob("*dev.json")
    split = read_record(path).split
    assert split
    assert main(framework, "strategies", [*flags, "--resume"]) == 0  # nothing is left to do
    assert read_record(path).split == split
