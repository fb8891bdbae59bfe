"""The runs of the parity grid: which they are, and that they are what the commands do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common import grid
from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.chapters.chapters import SUITES
from common.chapters.strategies import STRATEGIES
from common.settings.arguments import parser

ROOT = Path(__file__).parents[2]
FLAGS = "--dataset=synthetic --train-examples=60 --test-examples=50 --batch-size=20 --steps=3"


def flags_of(name: str, gpus: int = 0) -> list[list[str]]:
    """The flags of all runs of a framework's grid, on few devices and on more."""
    few, many = (
        grid.commands(name, Path("r"), more_devices=more, gpus=gpus) for more in (False, True)
    )
    return [flags for _, flags in few + many]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_suite_that_a_framework_has_runs_on_its_devices(name: str) -> None:
    planned = [suite for suite in SUITES if suite.kind == "cpu" and name not in suite.lacking]
    found = flags_of(name)
    assert len(found) == sum(len(suite.counts(more_devices=True)) for suite in planned)
    native = {flag for flags in found for flag in flags if "--native" in flags}
    strategies = {f"--strategy={each}" for each in STRATEGIES if each not in NO_NATIVE[name]}
    assert {flag for flag in native if flag.startswith("--strategy")} == strategies
    for chapter, flags in grid.commands(name, Path("r")):
        parser(name, chapter).parse_args(flags)


@pytest.mark.parametrize("gpus", [1, 3])
def test_gpus_repeat_what_cpu_devices_do_as_far_as_there_are_so_many(gpus: int) -> None:
    found = flags_of("jax", gpus=gpus)
    assert all({"--device-kind=gpu", "--deterministic"} <= {*flags} for flags in found)
    on_cpus = [flags[0] for flags in flags_of("jax")]
    expected = [flag for flag in on_cpus if int(flag.removeprefix("--devices=")) <= gpus]
    assert sorted(flags[0] for flags in found) == sorted(expected)


def run_grid(framework: str, *todo: list[str]) -> "subprocess.CompletedProcess[str]":
    """Runs `todo` on one core: the grid forks, so it has to be a process of its own."""
    lines = [
        "from common import grid",
        "grid.cores = lambda: 1",
        f"grid.commands = lambda *_, **__: [('scratch', flags) for flags in {todo}]",
        f"raise SystemExit(grid.main(['{framework}']))",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_what_fails_is_said_and_ends_the_grid(tmp_path: Path) -> None:
    done = run_grid("pytorch", *[["--devices=0", f"--out={tmp_path}"]] * 20)
    assert done.returncode == 2
    assert done.stdout.count("'0' is not a whole number") == 1
    assert f"python -m frameworks.pytorch.scratch --devices=0 --out={tmp_path}" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.only("pytorch")
def test_a_run_is_what_its_command_does(framework: str, tmp_path: Path) -> None:
    ran = {}
    for name in ("forked", "command"):
        flags = [*FLAGS.split(), "--devices=2", "--threads=1", f"--out={tmp_path / name}"]
        if name == "forked":
            done = run_grid(framework, flags)
            assert (done.returncode, done.stderr) == (0, "")
            assert "test acc: " in done.stdout
        else:
            command = [sys.executable, "-m", f"frameworks.{framework}.scratch", *flags]
            subprocess.run(command, cwd=ROOT, check=True)
        record = json.loads((tmp_path / name / f"{framework}-scratch-2dev.json").read_text())
        assert record["command"] == ["python", "-m", f"frameworks.{framework}.scratch", *flags]
        assert record["status"] == "complete"
        ran[name] = record["losses"]
    assert ran["forked"] == ran["command"]
