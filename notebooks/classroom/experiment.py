"""Short runs in every framework that is installed here, for the chapter on parity.

Each run is a command in its framework's own environment: the notebook itself loads none.
"""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.chapters.chapters import SPECS, SUITES
from common.compare.runs import Run
from common.pairs.runs import read_run
from common.records.record import record_name
from common.settings.arguments import as_flags
from notebooks.text.sources import ROOT

AT_ONCE: Final = 2
"""Runs at the same time."""

RUN_TIMEOUT: Final = 300.0
"""Seconds that a run may take."""

SLOW: Final = ("tensorflow", "jax")
"""The slowest frameworks start first, so that no core is idle at the end."""

Runs = dict[str, Run]
"""By framework."""


@dataclass(frozen=True)
class Command:
    """The command of a run: `arguments` follow the interpreter."""

    framework: str
    python: Path
    arguments: Sequence[str]


def interpreters(root: Path = ROOT) -> dict[str, Path]:
    """The Python of each framework that has an environment here.

    Raises RequestError if fewer than two have one: there would be nothing to compare.
    """
    pythons = {}
    for framework in FRAMEWORKS:
        names = (framework, f"notebooks-{framework}")
        paths = (root / ".nox" / name / "bin/python" for name in names)
        if python := next((path for path in paths if os.access(path, os.X_OK)), None):
            pythons[framework] = python
    if len(pythons) < 2:
        installed = ", ".join(pythons) or "no framework"
        raise RequestError(
            f"it takes two frameworks, and {installed} has an environment in .nox: "
            "`nox --install-only` makes all, and `nox -s pytorch jax --install-only` makes two"
        )
    return pythons


def short_runs(results: Path, chapter: str, suite: str, *flags: str) -> Runs:
    """Runs a suite of plain `nox` on one device in every framework, two runs at a time.

    The records go below `results`. Raises RequestError or RunError if a run fails.
    """
    pythons = interpreters()
    commands = [
        command(name, pythons[name], chapter, [*suite_flags(results, chapter, suite), *flags])
        for name in sorted(pythons, key=lambda name: name not in SLOW)
    ]
    run_all(commands)
    return read_runs(results / folder_of(chapter, suite), chapter, pythons)


def folder_of(chapter: str, suite: str) -> str:
    """Where the records of a suite go."""
    return next(known.folder for known in SUITES if (known.chapter, known.name) == (chapter, suite))


def suite_flags(results: Path, chapter: str, suite: str) -> list[str]:
    """The flags of a suite on one device, its record going below `results`."""
    planned = next(known for known in SUITES if (known.chapter, known.name) == (chapter, suite))
    return as_flags(planned.given(1, results.resolve()))


def command(framework: str, python: Path, chapter: str, flags: Sequence[str]) -> Command:
    """The command of a chapter in a framework."""
    return Command(framework, python, ["-m", f"frameworks.{framework}.{chapter}", *flags])


def read_runs(folder: Path, chapter: str, frameworks: Iterable[str], devices: int = 1) -> Runs:
    """The run of each framework in a folder, in the project's order."""
    return {
        name: read_run(folder / record_name(name, chapter, devices, SPECS[chapter].way({})))
        for name in FRAMEWORKS
        if name in set(frameworks)
    }


def run_all(commands: Sequence[Command]) -> None:
    """Runs all, some at a time, and prints a line as each ends. Raises RunError if one fails."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for future in as_completed([pool.submit(run, command) for command in commands]):
                print(future.result(), flush=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if len(commands) > 1:
        print(f"{len(commands)} runs, {time.perf_counter() - begun:.1f} s in all")


def run(command: Command) -> str:
    """Runs a command and returns a line with its time. Raises RunError with its last line."""
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            [str(command.python), *command.arguments, "--quiet"],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command.framework}: {error}") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise RunError(f"{command.framework} ended with status {done.returncode}: {lines[-1]}")
    return f"{command.framework:<12}{time.perf_counter() - begun:5.1f} s"
