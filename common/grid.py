"""Runs what a comparison needs of a framework: a run for each core at a time, four at most.

python -m common.grid jax
"""

import argparse
import os
import signal
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

from common.backends.frameworks import FRAMEWORKS
from common.base.children import end, start
from common.base.errors import RequestError
from common.base.machine import cores
from common.chapters.chapters import CHAPTERS, SUITES
from common.settings.arguments import as_flags
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, REPEATS, count, path
from common.training.cli import train

Planned = tuple[str, Mapping[str, Any]]
"""A run: its chapter, and the settings that are given."""


def runs(
    framework: str,
    results: Path,
    *,
    more_devices: bool = False,
    over_hosts: int = 0,
    gpus: int = 0,
) -> list[Planned]:
    """The runs of a framework: those of plain `nox`, or those that `nox -s grid` adds.

    With `gpus`, these on GPUs, as far as there are so many. Or, instead, those on one host with
    which runs over several are compared, on at most `over_hosts`.
    """
    planned = []
    for suite in SUITES:
        counts: Iterable[int] = suite.more_devices if more_devices else suite.devices
        if over_hosts:
            counts = [k for k in suite.counts(over_hosts=over_hosts) if suite.hosts[k] == 1]
        if framework not in suite.lacking and suite.kind == ("gpu" if gpus else "cpu"):
            few = (k for k in counts if k <= (gpus or k))
            planned += [(suite.chapter, suite.given(k, results)) for k in few]
    # The presets train longest: begun first, they leave no core idle at the end.
    return sorted(planned, key=lambda run: run[1].get("preset") != "quick")


def seed_runs(results: Path, chapter: str, seeds: int) -> list[Planned]:
    """The runs of one framework that show what the seed does: the quick preset with 0, 1, 2, ..."""
    given = {"preset": "quick", "devices": 1, "threads": 1}
    own = ({"seed": seed, "out": results / str(seed)} for seed in range(seeds))
    return [(chapter, given | each) for each in own]


@dataclass(frozen=True)
class Run:
    """A run under way; what it prints goes to a file without a name, which no kill can leave."""

    command: str
    printed: IO[bytes]
    process: BaseProcess

    def end(self) -> tuple[int, str]:
        """Waits for its end; its exit status or the signal that ended it, and what it printed."""
        self.process.join()
        with self.printed:
            self.printed.seek(0)
            text = self.printed.read().decode(errors="replace").rstrip()
        code = self.process.exitcode or 0
        return abs(code), text if code >= 0 else f"{text}\nended by {signal.Signals(-code).name}"


def begin(framework: str, chapter: str, given: Mapping[str, Any]) -> Run:
    """Begins a run in a process of its own."""
    printed = tempfile.TemporaryFile()  # noqa: SIM115
    command = f"python -m frameworks.{framework}.{chapter} {' '.join(as_flags(given))}"
    # A new process gets what a pipe is made of; a bare number would mean nothing there.
    output = Connection(os.dup(printed.fileno()), readable=False)
    return Run(command, printed, start(work, framework, chapter, given, output))


def work(framework: str, chapter: str, given: Mapping[str, Any], output: Connection) -> None:
    """What the process of a run does: what the command does, with its output in a file."""
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    raise SystemExit(train(framework, chapter, given))


def run_all(framework: str, todo: Sequence[Planned], at_once: int) -> int:
    """Makes all runs and prints what each has printed, with its number.

    Returns 0, or the status of the first that failed: no more begin then.
    """
    from common.backends.loading import preload, set_tf32

    # Read when a framework is loaded; every run of the grid has one thread.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    set_tf32(False)
    # The runs are forked, and each would spend seconds on it. Where it is missing, each says so.
    preload(framework, "common.training.run")
    waiting, ended, failed = iter(todo), 0, 0
    running: dict[Any, Run] = {}  # by what becomes ready when it ends
    try:
        while True:
            for planned in islice(waiting, 0 if failed else at_once - len(running)):
                run = begin(framework, *planned)
                running[run.process.sentinel] = run
            if not running:
                return failed
            for sentinel in wait(list(running)):
                run, ended = running.pop(sentinel), ended + 1
                code, text = run.end()
                print(f"{ended}/{len(todo)} {run.command}\n{text}", flush=True)
                failed = failed or code
    finally:
        end(run.process for run in running.values())


def parser() -> Parser:
    """The command line."""
    made = Parser("python -m common.grid", __doc__)
    made.add_argument("framework", choices=FRAMEWORKS)
    add = made.add_mutually_exclusive_group().add_argument
    add("--more-devices", action="store_true", help="only those that `nox -s grid` adds")
    hosts = "instead: the runs on one host, on at most N devices, with which runs over hosts are "
    hosts += "compared"
    add("--over-hosts", type=count(DEVICES), metavar="N", default=0, help=hosts)
    add("--seeds", type=count(REPEATS), metavar="N", help="instead: the quick preset with N seeds")
    add = made.add_argument
    gpus = "the same runs on GPUs, on at most N of them"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    add("--chapter", choices=CHAPTERS, nargs="+", default=CHAPTERS, help="only these (all)")
    out, place = Path("results"), "where the records go (%(default)s)"
    add("--out", type=path, default=out, metavar="DIR", help=place)
    return made


def run_grid(flags: argparse.Namespace) -> int:
    """Makes the runs that the flags ask for. Raises RequestError."""
    if flags.gpus and (flags.seeds or flags.over_hosts):
        others = "--seeds and --over-hosts"
        raise RequestError(f"--gpus means nothing for {others}: those runs are on the CPU")
    if flags.seeds:
        todo = [each for c in flags.chapter for each in seed_runs(flags.out, c, flags.seeds)]
    else:
        extent = {name: getattr(flags, name) for name in ("more_devices", "over_hosts", "gpus")}
        planned = runs(flags.framework, flags.out, **extent)
        todo = [each for each in planned if each[0] in flags.chapter]
    workers = min(4, cores())
    print(f"{len(todo)} runs, {workers} at a time", flush=True)
    return run_all(flags.framework, todo, workers)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the grid. Returns 0, the status of the first run that failed, 2, 130 or 143."""
    made = parser()
    return status(made.prog, lambda: run_grid(made.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
