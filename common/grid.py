"""Runs what the parity grid needs of one framework, as many runs at a time as there are cores.

python -m common.grid jax
"""

import argparse
import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from common.arguments import Parser, cores
from common.cli import main as run_chapter
from common.cli import status as status_of
from common.suites import CHAPTERS, FRAMEWORKS, SUITES
from common.values import REPEATS, count

Command = tuple[str, list[str]]
"""A chapter and its flags."""


def commands(results: Path, *, more_devices: bool = False) -> list[Command]:
    """The runs of one framework: on 1 and 2 devices, or those on more that the suites have."""
    planned = [
        (suite.chapter, suite.flags(k, results))
        for suite in SUITES
        for k in (suite.more_devices if more_devices else suite.devices)
    ]
    # The presets train longest: begun first, they leave no core idle at the end.
    return sorted(planned, key=lambda command: "--preset=quick" not in command[1])


def seed_commands(results: Path, chapter: str, seeds: int) -> list[Command]:
    """The runs of one framework that show what the seed does: the quick preset with 0, 1, 2, ..."""
    flags = ["--preset=quick", "--devices=1", "--threads=1"]
    return [
        (chapter, [*flags, f"--seed={seed}", f"--out={results / str(seed)}"])
        for seed in range(seeds)
    ]


def server(framework: str) -> BaseContext:
    """A context whose processes are forked by one that has imported the framework, where it can.

    Each would spend seconds on it.
    """
    # Read when a framework is loaded; every run of the grid has one thread.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    package: Any = importlib.import_module(f"frameworks.{framework}")
    context.set_forkserver_preload(["common.run", *package.PRELOAD])
    return context


def run_one(context: BaseContext, framework: str, command: Command) -> int:
    """Runs one command in a process of its own; prints what it said once it is done."""
    chapter, flags = command
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        process = context.Process(target=work, args=(framework, chapter, flags, said))  # type: ignore[attr-defined]
        process.start()
        process.join()
        shown = said.read_text(encoding="utf-8").rstrip() if said.exists() else ""
    print(f"python -m frameworks.{framework}.{chapter} {' '.join(flags)}\n{shown}", flush=True)
    status: int = process.exitcode
    if status < 0:
        print(f"it was ended by {signal.Signals(-status).name}", file=sys.stderr)
    return abs(status)


def work(framework: str, chapter: str, flags: list[str], said: Path) -> None:
    """What the process of a run does: what the command does, with its output in a file."""
    with said.open("w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    raise SystemExit(run_chapter(framework, chapter, flags))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the grid. Returns 0, or the status of the first run that failed."""
    parser = Parser(
        prog="python -m common.grid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--more-devices", action="store_true", help="only runs on more than two")
    parser.add_argument(
        "--seeds", type=count(REPEATS), metavar="N", help="instead: the quick preset with N seeds"
    )
    parser.add_argument("--chapter", choices=CHAPTERS, default=CHAPTERS[0], help="of --seeds")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR")
    flags = parser.parse_args(argv)
    if flags.seeds:
        todo = seed_commands(flags.out, flags.chapter, flags.seeds)
    else:
        todo = commands(flags.out, more_devices=flags.more_devices)
    workers = min(4, cores())
    print(f"{len(todo)} runs, {workers} at a time", flush=True)
    run = partial(run_one, server(flags.framework), flags.framework)
    with ThreadPoolExecutor(workers) as pool:
        for status in pool.map(run, todo):
            if status:
                pool.shutdown(cancel_futures=True)
                return status
    return 0


if __name__ == "__main__":
    raise SystemExit(status_of("python -m common.grid", main))
