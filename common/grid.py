"""Runs what a comparison needs of a framework: a run for each core at a time, four at most.

python -m common.grid jax
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[1]))

from common.backends.frameworks import FRAMEWORKS
from common.base.children import end, start
from common.base.machine import cores
from common.base.signals import interruptible
from common.chapters.chapters import CHAPTERS, SUITES
from common.chapters.suites import Suite
from common.settings.arguments import as_flags
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, REPEATS, count, path
from common.training.cli import main as run_chapter

Command = tuple[str, list[str]]
"""A chapter and its flags."""


def commands(
    framework: str,
    results: Path,
    *,
    more_devices: bool = False,
    over_hosts: int = 0,
    gpus: int = 0,
) -> list[Command]:
    """The runs of a framework: those of plain `nox`, or those that `nox -s grid` adds.

    With `gpus`, these on GPUs, as far as there are so many. Or, instead, those on one host with
    which runs over several are compared, on at most `over_hosts`.
    """
    planned = [
        (suite.chapter, as_flags(suite.given(k, results)))
        for suite in SUITES
        if framework not in suite.lacking
        for k in _counts(suite, more_devices, over_hosts, gpus)
    ]
    # The presets train longest: begun first, they leave no core idle at the end.
    return sorted(planned, key=lambda command: "--preset=quick" not in command[1])


def _counts(suite: Suite, more_devices: bool, over_hosts: int, gpus: int) -> Sequence[int]:
    if suite.kind != ("gpu" if gpus else "cpu"):
        return ()
    if over_hosts:
        return [k for k in suite.counts(over_hosts=over_hosts) if suite.hosts[k] == 1]
    counts = suite.more_devices if more_devices else suite.devices
    return [k for k in counts if not gpus or k <= gpus]


def seed_commands(results: Path, chapter: str, seeds: int) -> list[Command]:
    """The runs of one framework that show what the seed does: the quick preset with 0, 1, 2, ..."""
    flags = ["--preset=quick", "--devices=1", "--threads=1"]
    return [
        (chapter, [*flags, f"--seed={seed}", f"--out={results / str(seed)}"])
        for seed in range(seeds)
    ]


@dataclass(frozen=True)
class StartedRun:
    """A run under way; what it says lands in a file without a name, which goes by itself."""

    command: str
    said: IO[bytes]
    process: BaseProcess

    def finish(self) -> int:
        """Waits for its end and prints what it said; its status."""
        self.process.join()
        with self.said:
            self.said.seek(0)
            told = self.said.read().decode(errors="replace").rstrip()
        print(f"{self.command}\n{told}", flush=True)
        status = self.process.exitcode or 0
        if status < 0:
            print(f"it was ended by {signal.Signals(-status).name}", file=sys.stderr)
        return abs(status)


def begin(framework: str, chapter: str, flags: list[str]) -> StartedRun:
    """Begins a run in a process of its own."""
    said = tempfile.TemporaryFile()  # noqa: SIM115
    command = f"python -m frameworks.{framework}.{chapter} {' '.join(flags)}"
    # A new process gets what a pipe is made of; a bare number would mean nothing there.
    handed = Connection(os.dup(said.fileno()), readable=False)
    return StartedRun(command, said, start(work, framework, chapter, flags, handed))


def work(framework: str, chapter: str, flags: list[str], said: Connection) -> None:
    """What the process of a run does: what the command does, with its output in a file."""
    for stream in (1, 2):
        os.dup2(said.fileno(), stream)
    raise SystemExit(run_chapter(framework, chapter, flags))


def run_all(framework: str, todo: Iterable[Command], at_once: int) -> int:
    """Runs all commands. Returns 0, or the status of the first that failed: no more begin then."""
    from common.backends.loading import preload, set_tf32

    # Read when a framework is loaded; every run of the grid has one thread.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    set_tf32(False)
    # The runs are forked, and each would spend seconds on it. Where it is missing, each says so.
    preload(framework, "common.training.run")
    waiting, failed = iter(todo), 0
    running: dict[Any, StartedRun] = {}  # by what becomes ready when it ends
    try:
        while True:
            for command in islice(waiting, 0 if failed else at_once - len(running)):
                run = begin(framework, *command)
                running[run.process.sentinel] = run
            if not running:
                return failed
            for sentinel in wait(list(running)):
                status_of_run = running.pop(sentinel).finish()
                failed = failed or status_of_run
    finally:
        end(run.process for run in running.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the grid. Returns 0, the status of the first run that failed, 130 or 143."""
    parser = Parser(
        prog="python -m common.grid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("framework", choices=FRAMEWORKS)
    add = parser.add_mutually_exclusive_group().add_argument
    add("--more-devices", action="store_true", help="only those that `nox -s grid` adds")
    add(
        "--over-hosts",
        type=count(DEVICES),
        metavar="N",
        default=0,
        help="instead: the runs on one host, on at most N devices, with which runs over hosts are "
        "compared",
    )
    parser.add_argument(
        "--gpus",
        type=count(DEVICES),
        metavar="N",
        default=0,
        help="the same runs on GPUs, on at most N of them",
    )
    add("--seeds", type=count(REPEATS), metavar="N", help="instead: the quick preset with N seeds")
    parser.add_argument(
        "--chapter", choices=CHAPTERS, nargs="+", default=CHAPTERS, help="these alone (all)"
    )
    out, place = Path("results"), "where the records go (%(default)s)"
    parser.add_argument("--out", type=path, default=out, metavar="DIR", help=place)
    flags = parser.parse_args(argv)
    if flags.gpus and (flags.seeds or flags.over_hosts):
        parser.error("--gpus means nothing for --seeds and --over-hosts: those runs are on the CPU")
    if flags.seeds:
        todo = [each for c in flags.chapter for each in seed_commands(flags.out, c, flags.seeds)]
    else:
        extent = {name: getattr(flags, name) for name in ("more_devices", "over_hosts", "gpus")}
        planned = commands(flags.framework, flags.out, **extent)
        todo = [each for each in planned if each[0] in flags.chapter]
    workers = min(4, cores())
    print(f"{len(todo)} runs, {workers} at a time", flush=True)
    with interruptible(signal.SIGTERM):
        return status(parser.prog, lambda: run_all(flags.framework, todo, workers))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.grid", main))
