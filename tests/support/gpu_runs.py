"""Runs on what calls itself GPUs, beside the same runs on CPU devices."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agreement import make
from numpy_chapter import NumpyChapter

from common.backends.devices import DeviceRequest, Devices, Process
from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array, Weights
from common.chapters.chapters import SUITES
from common.chapters.suites import Suite, on_gpus
from common.compare.folder import judge
from common.compare.suite import Verdict

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


@pytest.fixture(scope="module", name="gpu_runs")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    for framework in FRAMEWORKS:
        for devices in (1, 2, 3):
            run(folder, framework, devices, NumpyChapter(), "cpu")
            if framework in WITH_GPU and devices < 3:
                run(folder, framework, devices, OnGpus(), "gpu")
    return folder


@pytest.fixture(name="folder")
def with_gpu_runs(gpu_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("compare.planned", "compare.folder"):
        monkeypatch.setattr(f"common.{module}.SUITES", BOTH)
    return Path(shutil.copytree(gpu_runs, tmp_path / "made"))


def judged(folder: Path, gpus: int = 2) -> Verdict:
    return judge(folder, suites=(), more_devices=True, gpus=dict.fromkeys(WITH_GPU, gpus))
