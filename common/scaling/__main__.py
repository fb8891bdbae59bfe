"""Measures what an allreduce costs between simulated devices, and predicts it for a cluster."""

import argparse
import logging
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS, installed
from common.base.errors import RequestError
from common.base.machine import cores
from common.terminal.command import Parser, status
from common.terminal.values import above_zero

DESCRIPTION = """\
What an allreduce costs: messages and additions between simulated devices are MEASURED. From them
follow predictions for each algorithm on 2, 3 and 4 devices, which are compared with measured times.
The time on 2 to 64 devices of a cluster is PREDICTED. docs/allreduce.md explains the model.

python -m common.scaling --framework jax --latency 50 --bandwidth 12.5"""

GRADIENTS: Final = (129_068, 11_175_818)
"""The entries of the vectors that are summed: the parameters of LeNet and of ResNet-18."""

HERE: Final = (2, 3, 4)
"""The numbers of devices of the allreduces that are timed."""

BUDGET: Final = 15.0
"""The seconds in which the allreduces of one vector are timed."""


def scale(flags: argparse.Namespace) -> None:
    """Measures, predicts and prints. Raises RequestError or RunError."""
    from rich.console import Console

    from common.backends.devices import DeviceRequest, Process
    from common.backends.loading import import_backend, one_thread_each
    from common.base.machine import describe_machine, now
    from common.chapters.scratch import ALLREDUCES
    from common.scaling.cluster import Link
    from common.scaling.measure import Laboratory
    from common.scaling.tables import cluster_table, compared_table

    framework = flags.framework or next(iter(installed()), None)
    if framework is None:
        raise RequestError(
            "no framework is installed in this Python: `nox -s scaling` measures with one that has "
            "its own"
        )
    threads = 1 if one_thread_each(framework) else cores()
    chapter: Any = import_backend(framework, "scratch", threads)
    # TensorFlow would warn that it compiles its collective again for each size.
    logging.getLogger(framework).setLevel(logging.ERROR)
    devices = chapter.devices(Process(), DeviceRequest(max(HERE), "cpu", threads))
    print(f"measuring {framework}: this takes less than a minute", file=sys.stderr)
    lab, machine = Laboratory(chapter, devices.local), describe_machine()
    compared = [lab.compare(entries, HERE, ALLREDUCES, BUDGET) for entries in GRADIENTS]
    console = Console(highlight=False, markup=False)
    console.print(
        f"MEASURED on {now()[:10]}, on simulated devices of {framework} that share one machine: "
        f"{machine['processor']}, {machine['cores']} cores, threads: {threads}."
    )
    console.print(compared_table(chain.from_iterable(compared)))
    console.print(
        "\nPREDICTED, not measured: a cluster of equal devices, each with one full-duplex link of "
        f"latency {flags.latency:g} µs and {flags.bandwidth:g} GB/s, which adds "
        f"{flags.addition:g} GB/s."
    )
    link = Link(flags.latency * 1e-6, 1e-9 / flags.bandwidth, 1e-9 / flags.addition)
    console.print(cluster_table(max(GRADIENTS), link))


def parser() -> Parser:
    """The command line; it needs the standard library only, so that --help is instant."""
    made = Parser("python -m common.scaling", DESCRIPTION)
    first = "(the first that is installed)"
    made.add_argument("--framework", choices=FRAMEWORKS, help=first)
    add = made.add_argument_group("the cluster").add_argument
    for name, value, what in (
        ("--latency", 5, "of a message, in microseconds"),
        ("--bandwidth", 25, "of a device's link in each direction, in GB/s"),
        ("--addition", 500, "of received bytes, in GB/s"),
    ):
        add(name, type=above_zero, default=value, metavar="X", help=f"{what} (%(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns 0, 1 (it failed), 2 (a bad request) or 130."""
    made = parser()
    return status(made.prog, lambda: scale(made.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
