"""Measures what an allreduce is made of, predicts it, and simulates it on up to 4,096 devices.

python -m common.scaling --framework jax
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from common.backends.frameworks import installed
from common.base.errors import RequestError
from common.base.files import require_file
from common.hosts.launchers import ByHand, Launched, NothingToDoError, launched
from common.scaling.arguments import parser
from common.terminal.command import status

if TYPE_CHECKING:
    from common.scaling.results import Measured


def scale(flags: argparse.Namespace) -> None:
    """Measures or reads, simulates, prints and writes. Raises RequestError or RunError."""
    from common.scaling.output import finish
    from common.scaling.results import read_scaling
    from common.scaling.simulate import given
    from common.training.run import first_speaks

    try:
        here = Launched() if flags.measured else launched_as(flags)
    except NothingToDoError as reason:
        print(reason)
        return
    with first_speaks(here.process):
        path = flags.out / "scaling.json"
        for each in (path, path.with_suffix(".svg")) if here.process.rank == 0 else ():
            require_file(each, "--out")
        if here.process.count > 1:
            require_messages(flags.framework)
        by_flags = given(flags)
        if flags.measured and (flags.framework or flags.sizes or ByHand.of(flags) != ByHand()):
            raise RequestError(
                "--measured measures nothing: leave --framework, --sizes and other hosts out"
            )

    done = partial(finish, flags, by_flags)
    if flags.measured:
        earlier = read_scaling(flags.measured)
        done(earlier.measured, earlier.constants)
    elif here.process.count > 1:
        measure_with_others(here, flags, done)
    else:
        done(measure_now(flags))


def launched_as(flags: argparse.Namespace) -> Launched:
    """Which process this is. Raises RequestError if there are others, but no framework is named."""
    framework = flags.framework or next(iter(installed()), None)
    if framework is None:
        return Launched()
    here = launched(framework, flags.launcher, ByHand.of(flags))
    if here.process.count > 1 and not flags.framework:
        raise RequestError("there are several processes: name one --framework for all")
    return here


def require_messages(framework: str) -> None:
    """Raises RequestError if nothing that goes to and fro can be timed between processes."""
    from common.backends.loading import sends_messages

    if not sends_messages(framework):
        raise RequestError(
            f"{framework} has no messages from one process to another, so there is no latency to "
            "measure: take another framework, or --launcher none for devices of one process"
        )


def measure_with_others(
    here: Launched, flags: argparse.Namespace, finish: Callable[["Measured"], None]
) -> None:
    """Measures between processes on several hosts; the first one finishes."""
    from common.hosts.meeting import Meeting
    from common.hosts.supervise import with_others
    from common.scaling.between import Task

    def notice(line: str) -> None:
        if here.process.rank == 0 and not flags.quiet:
            print(line, file=sys.stderr)

    notice(f"measuring {flags.framework} between processes: this takes a minute or two")
    task = Task(flags.framework, flags.threads, chosen_sizes(flags), finish)
    with_others(Meeting(here, task.asked(), notice, flags.join_timeout), task)


def measure_now(flags: argparse.Namespace) -> "Measured":
    """What the flags ask to measure."""
    from common.scaling.measure import measure

    framework = flags.framework or next(iter(installed()), None)
    if framework is None:
        raise RequestError(
            "no framework is installed in this Python: `nox -s scaling` measures with one that has "
            "its own, and --measured takes an earlier measurement"
        )
    if not flags.quiet:
        print(f"measuring {framework}: this takes less than a minute", file=sys.stderr)
    return measure(framework, flags.threads, chosen_sizes(flags))


def chosen_sizes(flags: argparse.Namespace) -> list[int]:
    """The entries of the vectors that are summed."""
    from common.scaling.training_step import nets

    sizes: list[int] = flags.sizes or [net.parameters for net in nets()[:2]]
    return sizes


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the command line says. Returns 0, 1 (it failed), 2 (a bad request) or 130."""
    made = parser()
    return status(made.prog, lambda: scale(made.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
