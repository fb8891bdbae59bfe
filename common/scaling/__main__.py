"""Measures what an allreduce is made of, predicts it, and simulates it on up to 4,096 devices.

python -m common.scaling --framework jax
"""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.machine import cores
from common.terminal.command import Parser, status
from common.terminal.values import ENTRIES, THREADS, above_zero, count

if TYPE_CHECKING:
    from common.scaling.results import Measured, Scaling

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
    add = made.add_argument_group("files").add_argument
    add(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where scaling.json goes and, if Matplotlib is installed, scaling.svg (%(default)s)",
    )
    add("--quiet", action="store_true", help="write the files alone")
    return made


def _add_measuring(made: Parser) -> None:
    add = made.add_argument_group("what is measured").add_argument
    add("--framework", choices=FRAMEWORKS, help="(the first that this Python can import)")
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
    measured = "(as measured)"
    add(
        "--latency",
        type=above_zero,
        metavar="X",
        help=f"of a message, in microseconds {measured}",
    )
    add(
        "--bandwidth",
        type=above_zero,
        metavar="X",
        help="of a device's link in each direction, in GB/s; a network of 100 Gbit/s has 12.5 "
        f"{measured}",
    )
    add(
        "--addition",
        type=above_zero,
        metavar="X",
        help=f"how fast a device adds what it receives, in GB/s {measured}",
    )
    add(
        "--rate",
        type=above_zero,
        metavar="X",
        help="how fast a device trains, in 10^9 operations per second (half of what a matrix "
        "product reaches here)",
    )


def scale(flags: argparse.Namespace) -> None:
    """Measures or reads, simulates, prints and writes. Raises RequestError or RunError."""
    from common.base.files import require_file, write_text
    from common.scaling.results import Scaling, read_scaling
    from common.scaling.simulate import as_measured, given, simulate
    from common.scaling.tables import show

    path = flags.out / "scaling.json"
    for each in (path, path.with_suffix(".svg")):
        require_file(each, "--out")
    by_flags = given(flags)
    if flags.measured is not None:
        if flags.framework or flags.sizes:
            raise RequestError("--measured measures nothing: leave --framework and --sizes out")
        earlier = read_scaling(flags.measured)
        measured, otherwise = earlier.measured, earlier.constants
    else:
        measured = measure_now(flags)
        otherwise = as_measured(measured)
    cluster = otherwise.model_copy(update=by_flags)
    scaling = Scaling(measured=measured, constants=cluster, simulated=simulate(cluster))
    if not flags.quiet:
        show(scaling)
    write_text(path, scaling.model_dump_json(by_alias=True, indent=2) + "\n")
    print(f"written: {path}")
    draw(scaling, path)


def measure_now(flags: argparse.Namespace) -> "Measured":
    """What the flags ask to measure."""
    from common.scaling.measure import measure
    from common.scaling.training_step import nets

    framework = flags.framework or importable(flags.threads)
    if not flags.quiet:
        print(f"measuring {framework}: this takes less than a minute", file=sys.stderr)
    sizes = flags.sizes or [net.parameters for net in nets()[:2]]
    return measure(framework, flags.threads, sizes)


def draw(scaling: "Scaling", path: Path) -> None:
    """Draws the picture beside `path`, or says how to get it."""
    if find_spec("matplotlib") is None:
        again = f"python -m common.scaling --quiet --measured {path}"
        print(f"no picture: Matplotlib is not installed here; where it is, `{again}` draws it")
        return
    from common.scaling import plot

    picture = path.with_suffix(".svg")
    plot.draw(scaling.constants, picture)
    print(f"written: {picture}")


def importable(threads: int) -> str:
    """The first framework that this Python can import. Raises RequestError if there is none."""
    from common.backends.loading import import_backend, one_thread_each

    broken = []
    for framework in FRAMEWORKS:
        if find_spec(framework.removeprefix("py")) is None:  # PyTorch is imported as torch
            continue
        try:
            import_backend(framework, "scratch", 1 if one_thread_each(framework) else threads)
        except Exception:  # an installation may be broken in any way
            broken.append(framework)
        else:
            return framework
    found = f"{', '.join(broken)} cannot be imported" if broken else "no framework is installed"
    raise RequestError(
        f"{found} in this Python: `nox -s scaling` measures with one that has its own, and "
        "--measured takes what was measured before"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the command line says. Returns 0, 1 (it failed), 2 (a bad request) or 130."""
    made = parser()
    return status(made.prog, lambda: scale(made.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
