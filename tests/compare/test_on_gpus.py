"""Runs on GPUs join the table: held to CPU devices' numbers, and nothing else passes for them."""

from pathlib import Path

import numpy as np
import pytest
from agreement import failures
from gpu_runs import (
    BOTH,
    WITH_GPU,
    Rounds,
    judged,
    made as made,
    run,
    with_gpu_runs as with_gpu_runs,
)
from numpy_chapter import NumpyChapter

from common.compare.folder import judge
from common.compare.planned import preset_of
from common.compare.suite import Verdict
from common.data.dataset import Dataset
from common.data.synthetic import synthetic
from common.report.text import conclusion, markdown
from common.settings.request import Request


def wrong(verdict: Verdict) -> set[tuple[str, str, int, str]]:
    return {(each.check, each.framework, each.devices, each.note) for each in failures(verdict)}


def test_gpus_are_compared_with_as_many_cpu_devices(folder: Path) -> None:
    verdict = judged(folder)
    assert verdict.passed
    cpu, gpu = verdict.comparisons
    assert "gpus" not in {each.check for each in cpu.checks}
    compared = {(each.framework, each.devices) for each in gpu.checks if each.check == "gpus"}
    assert compared == {(framework, k) for framework in WITH_GPU for k in (1, 2)}
    assert (cpu.on_cpus, gpu.on_cpus) == ([], ["mxnet"])
    assert "on the CPU alone: mxnet" in markdown(verdict)
    assert conclusion(verdict).endswith(
        "checks passed: every framework computed the same; on GPUs, pytorch and tensorflow and jax "
        "computed the same; not compared: mxnet"
    )


def test_a_run_on_gpus_that_is_not_there_is_missed(folder: Path) -> None:
    assert {each[:3] for each in wrong(judged(folder, gpus=3))} == {
        ("record", framework, 3) for framework in WITH_GPU
    }


def test_what_ran_on_cpus_does_not_pass_for_gpus(folder: Path) -> None:
    run(folder, "jax", 2, NumpyChapter(), "cpu", BOTH[1])
    note = "device_kind is cpu, and the suite asks for gpu"
    assert ("record", "jax", 2, note) in wrong(judged(folder))
    assert ("record", "jax", 2, note) in wrong(judge(folder, chapters=["scratch"]))


def test_without_the_run_on_cpus_there_is_nothing_to_pass(folder: Path) -> None:
    (folder / "float64/jax-scratch-2dev.json").unlink()
    note = "there is no run on as many CPU devices to compare with"
    assert ("gpus", "jax", 2, note) in wrong(judged(folder))


def test_gpus_that_round_as_float32_are_seen(folder: Path) -> None:
    run(folder, "jax", 2, Rounds(), "gpu")
    verdict = judged(folder)
    assert ("gpus", "jax", 2, "") in wrong(verdict)
    (far,) = [each for each in failures(verdict) if each.check == "gpus"]
    assert far.distance is not None
    assert 5e-7 < far.distance < 5e-6
    assert far.tolerance == 1e-10
    assert {each.framework for each in failures(verdict)} == {"jax"}


def test_the_reference_is_that_of_cpus(folder: Path) -> None:
    for framework in WITH_GPU:  # they agree with each other
        for devices in (1, 2):
            run(folder, framework, devices, Rounds(), "gpu")
    gradients = [each for each in failures(judged(folder)) if each.check == "gradient"]
    assert {(each.framework, each.devices) for each in gradients} == {
        (framework, k) for framework in WITH_GPU for k in (1, 2)
    }
    assert np.isclose([each.distance or 0 for each in gradients], 1e-6, rtol=0.5).all()


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_preset_is_held_to_its_accuracy_on_gpus_too(kind: str) -> None:
    asked = Request.from_settings("jax", "scratch", preset="quick").resolve(2, kind)
    data = Dataset("synthetic", *synthetic(40, 100)).first(40, 100)
    whole = {"train_examples": 4800, "test_examples": 2000}
    config = asked.config(data).model_copy(update=whole)
    assert preset_of(config) == "quick"
    assert preset_of(config.model_copy(update={"deterministic": True})) == "quick"
    assert preset_of(config.model_copy(update={"tf32": True})) is None
