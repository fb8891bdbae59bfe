"""Times every framework and its rivals, and after every round writes bench.json and bench.md.

python -m bench --python jax=.nox/bench-jax/bin/python --out results

With `--beside 2`, while two other processes are busy, as on a machine that others use, too.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.busy import busy
from bench.plan import WORKLOADS, Entry, entries
from bench.report import markdown, print_report
from bench.results import Bench, gathered
from common.backends.frameworks import FRAMEWORKS, framework_and_python
from common.base.errors import RunError
from common.base.files import require_file, write_text
from common.base.machine import describe_machine, now
from common.base.signals import interruptible
from common.records.new import gpus_here
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, REPEATS, THREADS, count

Sample = tuple[Entry, dict[str, Any]]
"""What was measured, and what the process that measured it printed."""

FILES: Final = ("bench.json", "bench.md")


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and writes. Returns 0, 1 (a measurement failed), 2 (a bad request), 130 or 143."""
    made = parser()
    flags = made.parse_args(argv)
    with interruptible(signal.SIGTERM):
        return status(made.prog, lambda: measure_all(flags))


def measure_all(flags: argparse.Namespace) -> None:
    """Measures round by round. Raises RequestError or RunError."""
    pythons = dict(flags.python)
    frameworks = tuple(name for name in FRAMEWORKS if name in pythons)
    plan = entries(frameworks, tuple(flags.chapters), flags.gpus)
    for name in FILES:
        require_file(flags.out / name, "--out")
    found: list[Sample] = []
    failed: dict[Entry, str] = {}
    with busy(flags.beside):
        for number in range(1, flags.rounds + 1):
            # What fails from the start costs the others nothing; later on, the machine is to blame.
            kept = failed if number == 1 else None
            left = [each for each in plan if each not in failed]
            found += one_round(left, pythons, f"round {number}/{flags.rounds}", kept)
            if not any(each["data"] for _, each in found):
                raise RunError("; ".join(failed.values()))
            # If it is stopped, the rounds that are done stay.
            failures = [each.key() for each in failed]
            bench = write(flags.out, found, rounds=number, failed=failures, beside=flags.beside)
    print_report(bench)
    if failed:
        raise RunError(f"{len(failed)} of {len(plan)} could not be timed, see above")


def write(
    folder: Path, found: Sequence[Sample], *, rounds: int, failed: list[str], beside: int
) -> Bench:
    """Writes bench.json and bench.md of so many rounds to `folder`; returns what it wrote."""
    bench = Bench(
        created=now(),
        machine=describe_machine() | (gpus_here() if found[0][0].kind == "gpu" else {}),
        versions={entry.framework: each["versions"] for entry, each in found},
        data=next(each["data"] for _, each in found if each["data"]),
        rounds=rounds,
        beside=beside,
        failed=failed,
        samples=gathered((entry, each["figures"]) for entry, each in found),
    )
    data, table = (folder / name for name in FILES)
    write_text(data, bench.model_dump_json(by_alias=True, indent=2) + "\n")
    write_text(table, markdown(bench))
    return bench


def one_round(
    plan: Sequence[Entry], pythons: Mapping[str, str], name: str, failed: dict[Entry, str] | None
) -> Iterator[Sample]:
    """Measures the whole plan, each entry in a process of its own.

    `failed` gets the reason of each that fails. Where it is None, that raises RunError.
    """
    for number, entry in enumerate(plan, start=1):
        begun = time.perf_counter()
        told = ""
        try:
            yield entry, measure(entry, pythons[entry.framework])
        except RunError as error:
            if failed is None:
                raise
            failed[entry] = told = str(error)
        took = time.perf_counter() - begun
        progress = f"{name}, {number}/{len(plan)}: {told or entry.key()}, {took:.0f} s"
        print(progress, file=sys.stderr, flush=True)


def measure(entry: Entry, python: str) -> dict[str, Any]:
    """What the measuring process printed. Raises RunError if it failed."""
    what = [entry.framework, entry.chapter or "none", entry.contender, str(entry.devices)]
    what.append(f"--kind={entry.kind}")
    command = [python, "-m", "bench.measure", *what, "--child", "--started", repr(time.time())]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # it may be killed in the middle
        environment = os.environ | {"TMPDIR": folder}
        if entry.kind == "cpu":  # rivals would take a GPU
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # Libraries may print, too, also at the end.
    told = [line for line in done.stdout.splitlines() if line.startswith('{"figures"')]
    if done.returncode or not told:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise RunError(f"{entry.key()} failed: {last.removeprefix('bench.measure: error: ')}")
    found: dict[str, Any] = json.loads(told[-1])
    return found


def parser() -> Parser:
    """The command line."""
    made = Parser(
        prog="python -m bench",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--python",
        type=framework_and_python,
        action="append",
        required=True,
        metavar="FRAMEWORK=PYTHON",
        help="the Python that has a framework and its rivals; once for each framework",
    )
    made.add_argument(
        "--gpus",
        type=count(DEVICES),
        metavar="N",
        default=0,
        help="time ours on 1 and N GPUs, and rivals on one, in place of CPU devices",
    )
    made.add_argument(
        "--beside",
        type=count(THREADS),
        metavar="N",
        default=0,
        help="time everything while N other processes keep the processor busy",
    )
    made.add_argument(
        "--chapters", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), help="these alone"
    )
    rounds = "how often everything is timed (%(default)s)"
    made.add_argument("--rounds", type=count(REPEATS), default=3, metavar="N", help=rounds)
    out, place = Path("results"), "where the files go (%(default)s)"
    made.add_argument("--out", type=Path, default=out, metavar="DIR", help=place)
    return made


if __name__ == "__main__":
    raise SystemExit(status("python -m bench", main))
