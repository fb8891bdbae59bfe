"""Runs what a comparison needs of a framework: a run for each core at a time, four at most.

python -m common.grid jax
"""

import argparse
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import takewhile
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.backends.frameworks import FRAMEWORKS
from common.base.children import outcomes
from common.base.machine import cores
from common.chapters.spec import spec
from common.chapters.suites import SUITES
from common.data.download import decide
from common.settings.arguments import all_settings, as_flags
from common.terminal.command import DEVICES, Parser, count, path, status

Planned = tuple[str, Mapping[str, Any]]
"""A run: its chapter, and the settings that are given."""


def runs(
    framework: str, results: Path, *, more_devices: bool = False, gpus: int = 0
) -> list[Planned]:
    """The runs of a framework: those of plain `nox`, or those that `nox -s grid` adds.

    With `gpus`, these on GPUs, as far as there are so many.
    """
    planned = []
    for suite in SUITES:
        counts: Iterable[int] = suite.more_devices if more_devices else suite.devices
        if framework not in suite.lacking and suite.kind == ("gpu" if gpus else "cpu"):
            few = (k for k in counts if k <= (gpus or k))
            planned += [(suite.chapter, suite.given(k, results)) for k in few]
    # The presets train longest: begun first, they leave no core idle at the end.
    return sorted(planned, key=lambda run: run[1].get("preset") != "quick")


def work(framework: str, chapter: str, settings: Mapping[str, Any], output: Connection) -> None:
    """Does in a process of its own what the command of a run does, with its output in a file.

    A run with checkpoints, but no folder for them, is then resumed from its first one.
    """
    from common.training.run import run

    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    program = f"python -m frameworks.{framework}.{chapter}"

    def train(**files: Any) -> int:
        given = {**settings, **files}
        flags = as_flags(given)
        print(program, *flags, flush=True)
        return status(program, lambda: run(all_settings(framework, chapter, given), flags))

    every = settings.get("checkpoint_every")
    if not every or settings.get("checkpoint_dir"):
        raise SystemExit(train())
    with TemporaryDirectory() as kept:
        code = train(checkpoint_dir=Path(kept))
        first = next(Path(kept).glob(f"*-step{every}.json"), None)
        raise SystemExit(code or train(checkpoint_dir=Path(kept, "resumed"), resume_from=first))


def name(framework: str, chapter: str, settings: Mapping[str, Any]) -> str:
    """A run in words, with the folder of its record."""
    words = filter(None, (framework, chapter, spec(chapter).way(settings)))
    devices = settings["devices"]
    of_many = "s" if devices > 1 else ""
    return f"{' '.join(words)} on {devices} device{of_many}, in {settings['out']}"


def get_ready(framework: str) -> None:
    """Loads a framework, so that runs are forked from here; every one has one thread."""
    from common.backends.loading import preload, set_tf32

    # Read when a framework is loaded.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    set_tf32(False)
    # Each run would spend seconds on it. Where it is missing, each says so.
    preload(framework, "common.training.run")


def run_grid(flags: argparse.Namespace) -> int:
    """Makes all runs, until one fails. Returns its exit status, or 0.

    Prints a line for each run, and the whole output of one that fails.
    """
    framework, at_once, failed = flags.framework, min(4, cores()), 0
    planned = runs(framework, flags.out, more_devices=flags.more_devices, gpus=flags.gpus)
    images = decide()
    print(f"{len(planned)} runs, {at_once} at a time", flush=True)
    get_ready(framework)
    from common.data.synthetic import synthetic  # now: NumPy reads the number of threads

    for given in (given for _, given in planned if not images and "net" not in given):
        synthetic(first=(given.get("train_examples"), given.get("test_examples")))
    begun = ((framework, *run) for run in takewhile(lambda _: not failed, planned))
    with closing(outcomes(work, begun, at_once)) as ended:
        for number, (run, code, seconds, printed) in enumerate(ended, start=1):
            by = f"\nended by {signal.Signals(-code).name}" if code < 0 else ""
            failure = f"FAILED after {seconds:.1f} s\n{printed.rstrip()}{by}"
            how = failure if code else f"done in {seconds:.1f} s"
            print(f"{number}/{len(planned)} {name(*run)}: {how}", flush=True)
            failed = failed or abs(code)
    return failed


def parser() -> Parser:
    arguments = Parser("python -m common.grid", __doc__)
    arguments.add_argument("framework", choices=FRAMEWORKS)
    add = arguments.add_argument
    add("--more-devices", action="store_true", help="only those that `nox -s grid` adds")
    gpus = "the same runs on GPUs, on at most N of them"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    out, place = Path("results"), "where the records go (%(default)s)"
    add("--out", type=path, default=out, metavar="DIR", help=place)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the grid. Returns 0, the status of the first run that failed, 2, 130 or 143."""
    arguments = parser()
    return status(arguments.prog, lambda: run_grid(arguments.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
