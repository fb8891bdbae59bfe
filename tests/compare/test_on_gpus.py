"""Runs on GPUs join the table: compared with CPU devices' numbers; nothing else passes for them."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import failures, judge, make
from numpy_chapter import NumpyChapter

from common.backends.devices import DeviceRequest, Devices, Process
from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array, Weights
from common.chapters.chapters import SUITES
from common.chapters.suites import Suite, on_gpus
from common.compare.planned import preset_of
from common.compare.suite import Verdict
from common.data.dataset import Dataset
from common.data.synthetic import synthetic
from common.report.text import conclusion, subtitle
from common.settings.request import Request

SMALL = {"batch_size": 4, "steps": 2, "train_examples": 7, "test_examples": 5, "seed": 0}
PLANNED = replace(
    next(each for each in SUITES if each.name == "float64"),
    more_devices=(3,),
    settings={**SMALL, "lr": 0.2, "dtype": "float64"},
)
BOTH = [PLANNED, *on_gpus([PLANNED])]
WITH_GPU = ("pytorch", "tensorflow", "jax")


class OnGpus(NumpyChapter):
    """The same computation, on what it calls GPUs."""

    def devices(self, process: Process, request: DeviceRequest) -> Devices[str]:
        found = super().devices(process, request)
        names = [name.replace("cpu", "cuda") for name in found.names]
        return Devices("gpu", names, names)


class Rounds(OnGpus):
    """GPUs whose gradients are off by a millionth, as float32 would have it."""

    def loss_and_gradients(
        self, X: Array, y: Array, replicas: list[Weights], devices: Sequence[str]
    ) -> tuple[float, Weights]:
        loss, gradients = super().loss_and_gradients(X, y, replicas, devices)
        return loss, {name: values * (1 + 1e-6) for name, values in gradients.items()}


def run(
    folder: Path, framework: str, devices: int, backend: Any, kind: str, suite: Suite | None = None
) -> Path:
    suite = suite or BOTH[kind == "gpu"]
    place = folder / suite.folder
    place.mkdir(parents=True, exist_ok=True)
    settings = {**suite.settings, "device_kind": kind, "init_weights": None}
    return make(place, framework, backend, devices, **settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for framework in FRAMEWORKS:
        for devices in (1, 2, 3):
            run(folder, framework, devices, NumpyChapter(), "cpu")
            if framework in WITH_GPU and devices < 3:
                run(folder, framework, devices, OnGpus(), "gpu")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("planned", "folder"):
        monkeypatch.setattr(f"common.compare.{module}.SUITES", BOTH)
    return Path(shutil.copytree(made, tmp_path / "made"))


def judged(folder: Path, gpus: int = 2) -> Verdict:
    return judge(folder, suites=(), more_devices=True, gpus=dict.fromkeys(WITH_GPU, gpus))


def wrong(verdict: Verdict) -> set[tuple[str, str, int, str]]:
    return {(each.check, each.framework, each.devices, each.note) for each in failures(verdict)}


def test_gpus_are_compared_with_as_many_cpu_devices(folder: Path) -> None:
    verdict = judged(folder)
    assert verdict.passed
    cpu, gpu = verdict.comparisons
    assert "gpus" not in {each.check for each in cpu.checks}
    compared = {(each.framework, each.devices) for each in gpu.checks if each.check == "gpus"}
    assert compared == {(framework, k) for framework in WITH_GPU for k in (1, 2)}
    assert cpu.notes == []
    assert "; on the CPU alone: mxnet" in subtitle(gpu)
    assert conclusion(verdict).endswith(
        "checks passed: every framework computed the same; on GPUs, pytorch, tensorflow and jax "
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
def test_a_preset_has_its_accuracy_on_gpus_too(kind: str) -> None:
    asked = Request.from_settings("jax", "scratch", preset="quick").resolve(2, kind)
    data = Dataset("synthetic", *synthetic(40, 100)).first(40, 100)
    whole = {"train_examples": 4800, "test_examples": 2000}
    config = asked.config(data).model_copy(update=whole)
    assert preset_of(config) == "quick"
    assert preset_of(config.model_copy(update={"deterministic": True})) == "quick"
    assert preset_of(config.model_copy(update={"tf32": True})) is None
