"""What runs of strategies by hand refuse, and what else their numbers do not show."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scratch_steps import start

from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.records.record import read_record
from common.training.cli import main


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
