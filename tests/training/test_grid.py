"""The runs of the grid, and their commands."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from started import OFFLINE, python

from common import grid
from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.chapters.suites import SUITES
from common.parallel.strategies import OF_ANY_NET
from common.settings.arguments import all_settings, as_flags, parser

SETTINGS = {"devices": 2, "threads": 1, "dataset": "synthetic", "train_examples": 60}
SETTINGS |= {"test_examples": 50, "batch_size": 20, "steps": 3}


def given(name: str, gpus: int = 0) -> list[grid.Planned]:
    """All runs of a framework's grid, on few devices and on more."""
    few, many = (grid.runs(name, Path("r"), more_devices=more, gpus=gpus) for more in (False, True))
    return few + many


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_suite_that_a_framework_has_runs_on_its_devices(name: str) -> None:
    planned = [suite for suite in SUITES if suite.kind == "cpu" and name not in suite.lacking]
    found = given(name)
    assert len(found) == sum(len(suite.counts(more_devices=True)) for suite in planned)
    native = {each.get("strategy") for _, each in found if each.get("native")}
    assert native == {each for each in OF_ANY_NET if each not in NO_NATIVE.get(name, OF_ANY_NET)}
    for chapter, each in found:  # the command line that is printed asks for the same
        flags = parser(name, chapter).parse_args(as_flags(each))
        assert vars(flags) == all_settings(name, chapter, each)


@pytest.mark.parametrize("gpus", [1, 3])
def test_gpus_repeat_what_cpu_devices_do_as_far_as_there_are_so_many(gpus: int) -> None:
    found = given("jax", gpus=gpus)
    assert all((each["device_kind"], each["deterministic"]) == ("gpu", True) for _, each in found)
    # What resumes on the CPU shows enough.
    cpu = [each for _, each in given("jax") if not each["out"].name.endswith("-resumed")]
    expected = [each["devices"] for each in cpu if each["devices"] <= gpus]
    assert sorted(each["devices"] for _, each in found) == sorted(expected)


def run_grid(framework: str, *todo: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
    """The grid forks, so it has to be a process of its own."""
    lines = [
        "from pathlib import PosixPath",
        "from common import grid",
        "grid.cores = lambda: 1",
        f"grid.runs = lambda *_, **__: [('scratch', each) for each in {todo}]",
        f"raise SystemExit(grid.main(['{framework}']))",
    ]
    return python("-c", "\n".join(lines), **OFFLINE)


def test_all_that_a_failed_run_says_is_shown_and_ends_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = run_grid("pytorch", *[{"devices": 65, "out": tmp_path}] * 20)
    assert done.returncode == 2
    planned, line, command, error = done.stdout.splitlines()
    assert planned == "20 runs, 1 at a time"
    of_run = rf"1/20 pytorch scratch on 65 devices, in {tmp_path}: FAILED after \d+\.\d s"
    assert re.fullmatch(of_run, line)
    assert command == f"python -m frameworks.pytorch.scratch --devices=65 --out={tmp_path}"
    assert "error: --devices 65: Input should be less than or equal to 64" in error
    assert not list(tmp_path.iterdir())
    decided = "all runs train on drawn images: no Fashion-MNIST here"
    assert done.stderr.splitlines()[0].startswith(decided)


@pytest.mark.only("pytorch")
def test_a_run_is_what_its_command_does(framework: str, tmp_path: Path) -> None:
    out = {name: {**SETTINGS, "out": tmp_path / name} for name in ("forked", "resumed", "command")}
    done = run_grid(framework, out["forked"], out["resumed"] | {"checkpoint_every": 2})
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()[1:]
    for number, (line, name) in enumerate(zip(lines, out, strict=False), start=1):
        of_run = rf"{number}/2 pytorch scratch on 2 devices, in {tmp_path / name}: done in [\d.]+ s"
        assert re.fullmatch(of_run, line)
    flags = as_flags(out["command"])
    done = python("-m", f"frameworks.{framework}.scratch", *flags)
    assert done.stdout.splitlines()[-1].startswith("test acc: "), done.stderr
    assert len(lines) == 2
    records = [
        json.loads((tmp_path / name / f"{framework}-scratch-2dev.json").read_text()) for name in out
    ]
    for record, name in zip(records, out, strict=True):
        if name != "resumed":
            command = [*("python", "-m", f"frameworks.{framework}.scratch"), *as_flags(out[name])]
            assert record["command"] == command
        assert record["status"] == "complete"
        assert [each["step"] for each in record["resumed"]] == [2] * (name == "resumed")
        assert record["losses"] == records[0]["losses"]
