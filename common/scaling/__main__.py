"""Measures what an allreduce costs between virtual devices, and predicts it for a cluster."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[2]))

from common.backends.frameworks import FRAMEWORKS, installed
from common.base.errors import RequestError
from common.base.files import require_file, write_text
from common.base.machine import cores
from common.terminal.command import Parser, status
from common.terminal.values import ENTRIES, THREADS, above_zero, count, path

DESCRIPTION = """\
What an allreduce costs: latency and bandwidth between virtual devices are MEASURED, each
algorithm's time on 2, 3 and 4 devices is predicted from them and compared with what is measured,
and the time on 2 to 64 devices of a cluster is PREDICTED. docs/allreduce.md explains the model.

python -m common.scaling --framework jax --latency 50 --bandwidth 12.5"""

GRADIENTS = (129_068, 11_175_818)
"""The parameters of LeNet and of the book's ResNet-18."""


def scale(flags: argparse.Namespace) -> None:
    """Measures, prints and writes. Raises RequestError or RunError."""
    from rich.console import Console

    from common.scaling.cluster import Link
    from common.scaling.measure import measure
    from common.scaling.tables import parts

    path = flags.out / "scaling.json"
    require_file(path, "--out")
    framework = flags.framework or next(iter(installed()), None)
    if framework is None:
        raise RequestError(
            "no framework is installed in this Python: `nox -s scaling` measures with one that has "
            "its own"
        )
    link = Link(flags.latency * 1e-6, 1e-9 / flags.bandwidth, 1e-9 / flags.addition)
    print(f"measuring {framework}: this takes less than a minute", file=sys.stderr)
    measured = measure(framework, flags.threads, flags.sizes)
    console = Console(highlight=False, markup=False)
    for part in parts(measured, link):
        console.print(part)
        console.print()
    write_text(path, json.dumps({"measured": asdict(measured), "link": asdict(link)}, indent=2))
    print(f"written: {path}")


def parser() -> Parser:
    """The command line; it needs the standard library only, so that --help is instant."""
    made = Parser("python -m common.scaling", DESCRIPTION)
    add = made.add_argument_group("measurement").add_argument
    add("--framework", choices=FRAMEWORKS, help="(the first that is installed)")
    threads = "threads that all devices share (every core: %(default)s)"
    add("--threads", type=count(THREADS), default=cores(), metavar="N", help=threads)
    sizes = "float32 numbers in the vectors that are summed (the gradients of LeNet and ResNet-18)"
    add("--sizes", type=count(ENTRIES), nargs="+", default=GRADIENTS, metavar="N", help=sizes)
    place = "where scaling.json is written (%(default)s)"
    add("--out", type=path, default=Path("results"), metavar="DIR", help=place)
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
