"""Planted bugs are listed, planted in runs, and answered by the page."""

import re
from itertools import product
from pathlib import Path

import pytest
from agreement import SETTINGS, edit, make
from numpy_chapter import NumpyChapter
from started import python

from common.backends.frameworks import FRAMEWORKS
from common.chapters.suites import SUITES, Suite
from common.compare.folder import examine
from planted import page, right
from planted.__main__ import main
from planted.bugs import BUGS, CONTROL
from planted.run import failed_checks, with_right

PLANTED = [bug for bug in BUGS.values() if bug is not CONTROL]
RUN = "sum rebound", "one weight not reduced", "backward not reduced"
"""Bugs that the tests plant in every framework."""


def test_every_bug_has_words_a_source_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BUGS) > 40
    known = {f"{suite.chapter} {suite.name}": suite for suite in SUITES}
    for bug, line in zip(PLANTED, lines[1:], strict=True):
        assert line.startswith(f"{bug.name}: {bug.words} ({bug.source}); ")
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", bug.source)
        assert bug.words
        assert bug.runs
        for name, devices in bug.runs.items():
            assert {*devices} <= {*known[name].devices, *known[name].more_devices}


def test_quick_runs_may_have_another_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "preset", "batch_size", "lr", "steps", "dtype", "train_examples", "test_examples"
    given = {name: SETTINGS[name] for name in names}
    suite = Suite("scratch", "quick", ".", (1, 2), (), given | {"seed": 8})
    monkeypatch.setattr(right, "SUITES", [suite])
    (tmp_path / "synthetic").mkdir()
    for framework, devices in product(FRAMEWORKS, (1, 2)):
        folder, drawn = tmp_path / "synthetic/3", {"seed": 3, "init_weights": None}
        make(folder, framework, NumpyChapter(), devices, **drawn)
    ((where, checks),) = right.quick(tmp_path)
    assert where == "seed 3, synthetic"
    assert [check.why for check in checks if not check.passed] == []
    assert {check.framework for check in checks if check.check == "steps"} == {*FRAMEWORKS}


def test_a_bug_may_change_what_a_run_is_given(tmp_path: Path) -> None:
    folders = tmp_path / "right", tmp_path / "wrong"
    for folder in folders:
        path = make(folder, "jax", NumpyChapter(), 1, init_weights=None)
    edit(path, initial_weights_sha256="0" * 64)
    right, wrong = (examine(folder, frameworks=["jax"])[0] for folder in folders)
    failed = failed_checks({"": with_right(wrong, right)}, {"": [1]})
    assert [check.why for check in failed] == [
        "the first step does not begin with the initial weights"
    ]


def test_the_page_has_a_row_for_every_bug() -> None:
    rows = page.PAGE.read_text().removeprefix(page.HEAD).partition("\n## ")[0].splitlines()
    assert [row.split(" | ")[0] for row in rows[1:]] == [
        page.row(bug, []).split(" | ")[0] for bug in PLANTED
    ]
    hints = [row.split(" | ")[2] for row in rows[1:]]
    assert all(hint in ("–", bug.right) for hint, bug in zip(hints, PLANTED, strict=True))
    assert not any("nothing" in row.split(" | ")[1] for row in rows[1:])
    assert len([hint for hint in hints if hint != "–"]) >= 30


@pytest.mark.only("pytorch", "mxnet")
def test_a_bug_turns_runs_red_that_are_green_without_it(framework: str) -> None:
    done = python("-m", "planted", *RUN, "--framework", framework)
    assert done.returncode == 0, done.stderr
    answers = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert [re.sub(r", [\d.]+ s$", "", line) for line in answers] == [
        f"{framework}, control: GREEN",
        *(f"{framework}, {name}: caught by plain" for name in RUN),
    ]
    assert "conv1.weight on device 1 differs from its copy on device 0" in done.stdout
