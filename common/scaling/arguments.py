"""The command line of `python -m common.scaling`. Only the standard library."""

import argparse
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.machine import cores
from common.settings.arguments import add_hosts
from common.terminal.command import Parser
from common.terminal.values import ENTRIES, THREADS, above_zero, count

DESCRIPTION = """\
What an allreduce costs: latency and bandwidth between virtual devices are MEASURED, each
algorithm's time on 2, 3 and 4 devices is predicted from them and compared with what is measured,
and training on up to 4,096 devices is SIMULATED. docs/allreduce.md explains the model."""

EXAMPLES = """\
examples:
  python -m common.scaling --framework jax
      measure, compare and simulate, in under a minute; the simulated links are as measured here
  python -m common.scaling --latency 5 --bandwidth 25 --addition 500 --rate 50000
      simulate accelerators on a network of 200 Gbit/s instead
  python -m common.scaling --framework pytorch --coordinator n1:29500 --hosts 2 --host-rank 0
      measure between hosts; the same on the other one, with --host-rank 1
  python -m common.scaling --measured results/scaling.json --latency 50
      measure nothing: simulate another network, and draw, where no framework is installed
"""


def parser() -> Parser:
    """The command line; only the standard library, so that --help is instant."""
    made = Parser(
        prog="python -m common.scaling",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_measuring(made)
    _add_cluster(made)
    _add_files(made)
    add_hosts(made)
    return made


def _add_files(made: Parser) -> None:
    add = made.add_argument_group("files").add_argument
    add(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where scaling.json goes and, if Matplotlib is installed, scaling.svg (%(default)s)",
    )
    add("--quiet", action="store_true", help="write the files alone")


def _add_measuring(made: Parser) -> None:
    add = made.add_argument_group("what is measured").add_argument
    add("--framework", choices=FRAMEWORKS, help="(the first that is installed)")
    add(
        "--measured",
        type=Path,
        metavar="FILE",
        help="measure nothing: take everything that no flag sets from this scaling.json",
    )
    add(
        "--threads",
        type=count(THREADS),
        default=cores(),
        metavar="N",
        help="threads that all devices share (every core: %(default)s)",
    )
    add(
        "--sizes",
        type=count(ENTRIES),
        nargs="+",
        metavar="N",
        help="float32 numbers in the vectors that are summed (the gradients of LeNet, 129068, and "
        "ResNet-18, 11175818)",
    )


def _add_cluster(made: Parser) -> None:
    add = made.add_argument_group("the simulated cluster").add_argument
    known = {
        "--latency": "of a message, in microseconds (as measured)",
        "--bandwidth": "of a device's link in each direction, in GB/s; a network of 100 Gbit/s has "
        "12.5 (as measured)",
        "--addition": "how fast a device adds what it receives, in GB/s (as measured)",
        "--rate": "how fast a device trains, in 10^9 operations per second (half of what a matrix "
        "product reaches here)",
    }
    for name, what in known.items():
        add(name, type=above_zero, metavar="X", help=what)
