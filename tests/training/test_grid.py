"""The runs of the parity grid: which they are, and that they are what the commands do."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from common import grid
from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.chapters.chapters import CHAPTERS, SUITES
from common.chapters.strategies import STRATEGIES
from common.settings.arguments import parser

ROOT = Path(__file__).parents[2]
FLAGS = "--dataset=synthetic --train-examples=60 --test-examples=50 --batch-size=20 --steps=3"


def test_every_suite_runs_on_its_devices() -> None:
    first, more = (
        grid.commands("jax", Path("r")),
        grid.commands("jax", Path("r"), more_devices=True),
    )
    on_cpus = [suite for suite in SUITES if suite.kind == "cpu" and "jax" not in suite.lacking]
    assert len(first) == sum(len(suite.devices) for suite in on_cpus)
    assert len(more) == sum(len(suite.more_devices) for suite in on_cpus)
    asked = [(chapter, flag) for chapter, flags in first + more for flag in flags]
    for k in (1, 2, 4):
        assert {chapter for chapter, flag in asked if flag == f"--devices={k}"} == {*CHAPTERS}
    assert not {flag for _, flags in first for flag in flags} & {"--devices=3", "--devices=4"}
    assert all("--preset=quick" in flags for _, flags in first[:4])
    assert sum("--layers" in flags for _, flags in first) == 2
    for chapter, flags in first + more:
        parser("jax", chapter).parse_args(flags)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_runs_what_it_can(name: str) -> None:
    every = [
        flags
        for more in (False, True)
        for _, flags in grid.commands(name, Path("r"), more_devices=more)
    ]
    own = [flags for flags in every if "--native" in flags]
    expected = [
        suite
        for suite in SUITES
        if suite.kind == "cpu" and suite.settings.get("native") and name not in suite.lacking
        for _ in suite.counts(more_devices=True)
    ]
    assert len(own) == len(expected)
    wanted = {f"--strategy={suite.settings['strategy']}" for suite in expected}
    assert {flag for flags in own for flag in flags if flag[:10] == "--strategy"} == wanted
    assert wanted == {f"--strategy={each}" for each in STRATEGIES if each not in NO_NATIVE[name]}


@pytest.mark.parametrize("gpus", [1, 3])
def test_gpus_repeat_what_cpu_devices_do_as_far_as_there_are_so_many(gpus: int) -> None:
    def on_gpus(flag: re.Match[str]) -> str:
        return f"{flag[1]}gpu" if flag[1] else f"{flag[2]}/gpu"

    same = ["--deterministic"]
    on_cpus = [
        *grid.commands("jax", Path("r")),
        *grid.commands("jax", Path("r"), more_devices=True),
    ]
    expected = [
        (
            chapter,
            [re.sub("^(--device-kind=)cpu|^(--out=r)", on_gpus, flag) for flag in flags] + same,
        )
        for chapter, flags in on_cpus
        if int(flags[0].removeprefix("--devices=")) <= gpus
    ]
    found = grid.commands("jax", Path("r"), gpus=gpus)
    found += grid.commands("jax", Path("r"), gpus=gpus, more_devices=True)
    assert all("--device-kind=gpu" in flags for _, flags in found)
    assert sorted(found) == sorted(expected)


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
