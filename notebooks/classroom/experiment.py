"""Runs by the command line: short ones in every framework, and with processes for devices."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.chapters.suites import SUITES, Suite
from common.compare.runs import RecordedRun
from common.pairs.runs import read_run
from common.settings.arguments import as_flags
from common.training.loop import Outcome
from notebooks.text.sources import ROOT

Runs = dict[str, RecordedRun]
"""By framework."""


def interpreters(root: Path = ROOT) -> dict[str, Path]:
    """The Python of each framework that has an environment here.

    Raises RequestError if fewer than two have one: there would be nothing to compare.
    """
    pythons = {}
    for framework in FRAMEWORKS:
        for name in (f"notebooks-{framework}", framework):
            python = root / ".nox" / name / "bin/python"
            if os.access(python, os.X_OK):
                pythons[framework] = python
    if len(pythons) < 2:
        how = "`nox -s pytorch jax --install-only` makes two"
        raise RequestError(f"it takes two frameworks with an environment in .nox: {how}")
    return pythons


def suite_of(chapter: str, name: str) -> Suite:
    """The suite of this name."""
    return next(suite for suite in SUITES if (suite.chapter, suite.name) == (chapter, name))


def command(
    python: Path, module: Sequence[str], suite: Suite, results: Path, flags: Sequence[str]
) -> list[str]:
    """The command of a suite's run on one device, with its record below `results`."""
    settings = as_flags(suite.given(1, results.resolve()))
    return [str(python), "-m", *module, *settings, "--quiet", *flags]


def short_runs(results: Path, chapter: str, name: str, *flags: str) -> Runs:
    """Runs a suite of plain `nox` on one device in every framework, two runs at a time.

    The records go below `results`. Raises RequestError or RunError if a run fails.
    """
    suite, pythons = suite_of(chapter, name), interpreters()
    commands = [
        command(python, [f"frameworks.{framework}.{chapter}"], suite, results, flags)
        for framework, python in pythons.items()
    ]
    begun = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(run, pythons, commands):
            print(line, flush=True)
    print(f"{len(commands)} runs, {time.perf_counter() - begun:.1f} s in all")
    folder = results / suite.folder
    return {name: read_run(folder / f"{name}-{chapter}-1dev.json") for name in pythons}


def run(name: str, command: Sequence[str]) -> str:
    """Runs a command and returns a line with its time. Raises RunError with its last line."""
    begun = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise RunError(f"{name} ended with status {done.returncode}: {lines[-1]}")
    return f"{name:<12}{time.perf_counter() - begun:5.1f} s"


def in_processes(framework: str, chapter: str, settings: Mapping[str, Any]) -> Outcome:
    """The outcome of a command that starts a process for each device. Raises RunError."""
    given = {k: v for k, v in settings.items() if v is not None and v is not False}
    with TemporaryDirectory() as folder:
        flags = as_flags({**given, "quiet": True, "out": folder})
        run(framework, [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *flags])
        (path,) = Path(folder).glob("*.json")
        done = read_run(path)
    return Outcome(done.record.losses, done.record.epochs, dict(done.arrays))
