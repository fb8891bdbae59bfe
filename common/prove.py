"""Compares the frameworks of an environment that you have, on the CPU and, with --gpus, on GPUs.

It needs no network and no nox. Each framework makes the runs of the grid, then all are compared.
The results go to --out, a folder that can be sent to others.

python -m common.prove
python -m common.prove jax=/opt/jax/bin/python pytorch=/opt/torch/bin/python
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS, framework_and_python, installed
from common.base.errors import RequestError, RunError
from common.base.files import require_writable
from common.data.download import decide
from common.terminal.command import DEVICES, Parser, count, path, status


def commands(flags: argparse.Namespace) -> Iterator[list[str]]:
    """The arguments of each Python: of each framework's runs, and of the comparison."""
    pythons = dict(flags.frameworks) or dict.fromkeys(installed(), sys.executable)
    if not pythons:
        example = "jax=/opt/jax/bin/python names one that has"
        raise RequestError(f"this Python has no framework: {example}")
    more = ["--more-devices"] * flags.more_devices
    gpus = [f"--gpus={flags.gpus}"] if flags.gpus else []
    for framework, python in pythons.items():
        grid = [python, "-m", "common.grid", framework, f"--out={flags.out}"]
        on_gpus = gpus and framework not in flags.without_gpu
        # Those on GPUs first: where there are too few, it says so at once.
        for command in [[*grid, *gpus], grid] if on_gpus else [grid]:
            yield command
            if more:
                yield [*command, *more]
    without = ["--without-gpu", *flags.without_gpu] if flags.without_gpu else []
    parity = [sys.executable, "-m", "common.parity", str(flags.out), "--planned"]
    yield [*parity, "--frameworks", *pythons, *more, *gpus, *without]


def passes(command: Sequence[str]) -> bool:
    """Whether a command ends well; whatever ends this process ends that one in order, too."""
    # A group of its own: a terminal's Ctrl-C does not reach it, and one signal ends all of it.
    running = subprocess.Popen(command, stderr=subprocess.STDOUT, process_group=0)
    try:
        return running.wait() == 0
    except BaseException:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()
        raise


def prove(flags: argparse.Namespace) -> None:
    """Runs all commands, also after one that fails. Raises RequestError or RunError."""
    require_writable(flags.out)
    decide()
    failed = []
    for command in commands(flags):
        line = " ".join(["python", *command[1:]])
        print(line, flush=True)
        if not passes(command):
            failed.append(line)
    if failed:
        raise RunError(f"these have failed: {'; '.join(failed)}")


def parser() -> Parser:
    ends = "exit status: 0: all runs and checks passed; 1: one failed; 2: nothing was started"
    arguments = Parser("python -m common.prove", __doc__, epilog=ends)
    add, every = arguments.add_argument, ", ".join(FRAMEWORKS)
    these = f"only these: {every}, and the Python that has it, if not this one (all in this Python)"
    name = "FRAMEWORK[=PYTHON]"
    add("frameworks", type=framework_and_python, nargs="*", metavar=name, help=these)
    gpus = "also on N GPUs"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    on_cpu = "frameworks that are compared only on the CPU"
    add("--without-gpu", choices=FRAMEWORKS, nargs="+", default=(), help=on_cpu)
    more = "runs on 3 and 4 devices, too, where otherwise 1 and 2 are used"
    add("--more-devices", action="store_true", help=more)
    out, place = Path("results/proof"), "the folder for the results (%(default)s)"
    add("--out", type=path, default=out, metavar="DIR", help=place)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs and compares. Returns 0, 1 (something has failed), 2, 130 or 143."""
    arguments = parser()
    return status(arguments.prog, lambda: prove(arguments.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
