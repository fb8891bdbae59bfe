"""Changes the code of a framework's runs in small ways, one by one, and shows what notices each.

python -m mutants --framework jax --count 30 --seed 7

A copy of the project is changed, in lines that float64 runs of plain `nox` execute.
"""

import argparse
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from tempfile import TemporaryDirectory
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.records.fingerprint import ROOT
from common.terminal.command import Parser, status
from common.terminal.values import count
from mutants.changes import Mutant, mutants

FILES: Final = (
    *("[!_]*", "native/*", "../strategies/*", "../../common/training/loop"),
    *(f"../../common/parallel/{name}" for name in ("p*", "s*", "strategies/*")),
)
"""The files that decide numbers, seen from a backend, but for `OTHERS`."""
OTHERS: Final = "chapters", "common", "devices", "hosts", "libraries", "replicas"
LIMIT: Final = "900"
"""Seconds for a command: several times what the slowest takes."""
LEAST: Final = 0.8
"""The share of mutants that has to be noticed: 0.84 to 0.96 are measured, see docs/planted.md."""


def red(tree: Path, *command: str) -> str:
    """Why a command fails in the tree, or takes longer than that; nothing if it succeeds."""
    line = ["timeout", LIMIT, executable, "-m", *command]
    with Popen(line, cwd=tree, stdout=PIPE, stderr=PIPE, text=True, errors="replace") as process:
        try:
            output, errors = process.communicate()
        finally:  # interrupted, `timeout` ends its group
            process.terminate()
    lines = [f"status {process.returncode}", *errors.splitlines(), *output.splitlines()]
    failed = [text for text in lines if text.startswith(("FAILED", "ERROR"))]
    return (failed or lines)[-1] if process.returncode else ""


def sample(tree: Path, flags: argparse.Namespace, executed: set[str]) -> list[Mutant]:
    """Mutants of executed lines."""
    backend, found = tree / "frameworks" / flags.framework, []
    files = {file.resolve() for name in FILES for file in backend.glob(f"{name}.py")}
    for file in sorted(file for file in files if file.stem not in OTHERS):
        path = file.relative_to(tree).as_posix()
        found += [x for x in mutants(path, file.read_text()) if f"{path}:{x.line}" in executed]
    return random.Random(flags.seed).sample(found, min(flags.count, len(found)))


def work(flags: argparse.Namespace) -> int:
    """Prints what notices each mutant, and the score. Returns 1 if that is too low, else 0."""
    skipped = shutil.ignore_patterns(".*", "results", "__pycache__")
    with TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(shutil.copytree(ROOT, Path(folder).resolve() / "tree", ignore=skipped))
        runs = ["mutants.runs", flags.framework, folder]
        of_all = ["pytest", "-qx", "tests/parallel", "tests/training"]
        rooms = ["tests/chapters", "tests/backends", f"--framework={flags.framework}"]
        tests = [] if flags.list else [of_all, [*of_all, *rooms]]
        for command in [runs, *tests]:
            if line := red(tree, *command):
                raise RunError(f"without a change, {line}")
        files = sorted(Path(folder).glob("*.lines"), key=os.path.getmtime)
        lines = {file.stem: {*file.read_text().split()} for file in files}
        survivors, chosen = [], sample(tree, flags, set().union(*lines.values()))
        if flags.list:
            print(*(mutant.words for mutant in chosen), sep="\n")
            return 0
        for number, mutant in enumerate(chosen, 1):
            file, line = tree / mutant.path, ""
            right = file.rename(file.with_suffix(".right"))
            file.write_text(mutant.source)
            os.utime(file, (number, number))  # bytecode of another time is stale
            names = [name for name in lines if f"{mutant.path}:{mutant.line}" in lines[name]]
            for command in [[*runs, mutant.path, *names], *tests]:
                line = line or red(tree, *command)
            right.replace(file)
            survivors += [] if line else [mutant.words]
            print(f"{number} of {len(chosen)}: {mutant.words}: {line or 'SURVIVES'}", flush=True)
    killed = len(chosen) - len(survivors)
    print(f"{flags.framework}: {killed} of {len(chosen)} killed", *survivors, sep="\n")
    return int(killed < LEAST * len(chosen))


def main(argv: Sequence[str] | None = None) -> int:
    """Changes what the flags ask for. Returns 0, 1 if too many survive, 2, 130 or 143."""
    command = Parser("python -m mutants", __doc__)
    add = command.add_argument
    add("--framework", choices=FRAMEWORKS, required=True)
    add("--count", type=count(), default=30, metavar="N", help="how many (%(default)s)")
    add("--seed", type=count(least=0), default=0, metavar="N", help="which (%(default)s)")
    add("--list", action="store_true", help="only print them")
    return status(command.prog, lambda: work(command.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
