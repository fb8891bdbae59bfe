"""Whatever is changed in a folder of records turns its verdict red, or is known to be harmless."""

import shutil
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy_chapter
import numpy_concise
import pytest
from agreement import judge, make
from tampering import ROUNDING, tamper

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.chapters.chapters import SPECS, SUITES
from common.chapters.suites import Suite

SMALL = {"batch_size": 4, "steps": 2, "train_examples": 7, "test_examples": 5}


def small(suite: Suite) -> Suite:
    """A suite as it is, but for its size."""
    width = {"width": 1} if suite.chapter == "concise" else {}
    settings = {name: value for name, value in suite.settings.items() if name != "preset"}
    return replace(suite, devices=(1, 2), settings={**settings, **SMALL, **width, "seed": 0})


CHOSEN = ("quick", "float64", "float32", "ring", "float64-per-device", "float32-sync")
PLANNED = [small(suite) for suite in SUITES if suite.name in CHOSEN]


def run(folder: Path, suite: Suite, framework: str, devices: int) -> None:
    """Makes one record of a suite."""
    concise = suite.chapter == "concise"
    preset = "quick" if concise else "book"
    settings: dict[str, Any] = {"dtype": "float32", "init_weights": None, "preset": preset}
    settings |= {"lr": SPECS[suite.chapter].presets[preset].lr, **suite.settings}
    if concise:
        settings.setdefault("batch_norm", "per-device")
    backend = numpy_concise.NumpyConcise() if concise else numpy_chapter.NumpyChapter()
    place = folder / suite.folder
    place.mkdir(parents=True, exist_ok=True)
    make(place, framework, backend, devices, chapter=suite.chapter, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every record of all suites."""
    folder = tmp_path_factory.mktemp("whole")
    for suite, framework, devices in product(PLANNED, FRAMEWORKS, (1, 2)):
        run(folder, suite, framework, devices)
    return folder


@pytest.fixture(autouse=True)
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small suites in the place of the project's."""
    for module in ("planned", "folder"):
        monkeypatch.setattr(f"common.compare.{module}.SUITES", PLANNED)


def test_the_whole_folder_passes(whole: Path) -> None:
    verdict = judge(whole, suites=())
    assert verdict.passed
    assert len(verdict.comparisons) == len(PLANNED)


def test_what_is_changed_is_seen(
    whole: Path, tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: Counter[str] = Counter()
    missed = []
    for number in range(pytestconfig.getoption("--tamperings")):
        folder = tmp_path / "changed"
        shutil.copytree(whole, folder, copy_function=_link)
        change = tamper(folder, Random(number))
        try:
            passed = judge(folder, chapters=[change.chapter], suites=()).passed
        except RequestError as error:
            pytest.fail(f"{number}: {change.text}: {error}")
        harmless = change.harmless()
        if passed and not harmless:
            missed.append(f"{number}: {change.text}")
        seen[f"harmless: {harmless}" if passed else "red"] += 1
        shutil.rmtree(folder)
    with capsys.disabled():
        print("", *(f"{count} {what}" for what, count in seen.most_common()), sep="\n  ")
    assert not missed
    # How far rounding may go, the comparison itself says: that must not excuse much.
    assert seen[f"harmless: {ROUNDING}"] <= 0.02 * seen.total() + 1
    assert seen["red"] > 0.5 * seen.total()


def _link(source: str, target: str) -> None:
    """Links what is read alone: a file is unlinked before it is changed."""
    Path(target).hardlink_to(source)
