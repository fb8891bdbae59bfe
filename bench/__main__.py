"""Times every framework and what its users would run instead; writes bench.json after each round.

python -m bench --python jax=.nox/bench-jax/bin/python --out results
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from bench.plan import WORKLOADS, Entry, entries
from bench.report import HEADINGS, Bench, gathered
from common.backends.frameworks import FRAMEWORKS, framework_and_python
from common.base.errors import RunError
from common.base.files import require_file, write_text
from common.base.machine import describe_machine, now
from common.records.fingerprint import gpus_here
from common.terminal.command import Parser, status
from common.terminal.tables import table
from common.terminal.values import DEVICES, REPEATS, count, path

Sample = tuple[Entry, dict[str, Any]]
"""What was measured, and what the process that measured it printed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and writes. Returns 0, 1 (a measurement failed), 2 (a bad request), 130 or 143."""
    made = parser()
    return status(made.prog, lambda: measure_all(made.parse_args(argv)))


def measure_all(flags: argparse.Namespace) -> None:
    """Measures round by round. Raises RequestError or RunError."""
    pythons = dict(flags.python)
    frameworks = tuple(name for name in FRAMEWORKS if name in pythons)
    plan = entries(frameworks, tuple(flags.chapters), flags.gpus)
    path = flags.out / "bench.json"
    require_file(path, "--out")
    found: list[Sample] = []
    failed: dict[Entry, str] = {}
    for number in range(1, flags.rounds + 1):
        left = [each for each in plan if each not in failed]
        found += one_round(left, pythons, f"round {number}/{flags.rounds}", failed)
        found = [(entry, each) for entry, each in found if entry not in failed]
        if not found:
            raise RunError("; ".join(failed.values()))
        # If the benchmark is stopped, the finished rounds stay.
        bench = results(found, number, failed)
        write_text(path, bench.model_dump_json(by_alias=True, indent=2) + "\n")
    show(bench)
    if failed:
        raise RunError(f"{len(failed)} of {len(plan)} could not be timed, see above")


def results(found: Sequence[Sample], rounds: int, failed: Mapping[Entry, str]) -> Bench:
    """The content of bench.json."""
    return Bench(
        created=now(),
        machine=describe_machine() | (gpus_here() if found[0][0].kind == "gpu" else {}),
        versions={entry.framework: each["versions"] for entry, each in found},
        data=found[0][1]["data"],
        rounds=rounds,
        failed=[each.key() for each in failed],
        samples=gathered((entry, each["figures"]) for entry, each in found),
    )


def show(bench: Bench) -> None:
    """Prints the table."""
    console = Console(highlight=False)
    made = table(HEADINGS, bench.rows(), left=range(3))
    for column in made.columns[:3]:
        column.no_wrap = True
    console.print(made)
    console.print(bench.provenance(), soft_wrap=True)


def one_round(
    plan: Sequence[Entry], pythons: Mapping[str, str], name: str, failed: dict[Entry, str]
) -> Iterator[Sample]:
    """Measures the plan, each entry in a process of its own; `failed` gets reasons of failures."""
    for number, entry in enumerate(plan, start=1):
        begun = time.perf_counter()
        reason = ""
        try:
            yield entry, measure(entry, pythons[entry.framework])
        except RunError as error:
            failed[entry] = reason = str(error)
        took = time.perf_counter() - begun
        progress = f"{name}, {number}/{len(plan)}: {reason or entry.key()}, {took:.0f} s"
        print(progress, file=sys.stderr, flush=True)


def measure(entry: Entry, python: str) -> dict[str, Any]:
    """The output of the measuring process. Raises RunError if it failed."""
    words = [entry.framework, entry.chapter, entry.contender, str(entry.devices)]
    words += [f"--kind={entry.kind}", "--child", f"--started={time.time()!r}"]
    command = [python, "-m", "bench.measure", *words]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # it may be killed in the middle
        homes = dict.fromkeys(("TMPDIR", "KERAS_HOME", "MXNET_HOME"), folder)
        if entry.kind == "cpu":  # rivals would take a GPU
            homes["CUDA_VISIBLE_DEVICES"] = "-1"
        environment = os.environ | homes
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # Libraries may print, too, also at the end.
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"figures"')]
    if done.returncode or not lines:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise RunError(f"{entry.key()} failed: {last.removeprefix('bench.measure: error: ')}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def parser() -> Parser:
    """The command line."""
    made = Parser("python -m bench", __doc__)
    add = made.add_argument
    add(
        "--python",
        type=framework_and_python,
        action="append",
        required=True,
        metavar="FRAMEWORK=PYTHON",
        help="the Python that has a framework and its rivals; once for each framework",
    )
    gpus = "time ours on 1 and N GPUs, and rivals on one, in place of CPU devices"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    add("--chapters", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), help="these only")
    rounds = "how often everything is timed (%(default)s)"
    add("--rounds", type=count(REPEATS), default=3, metavar="N", help=rounds)
    place = "where bench.json is written (%(default)s)"
    add("--out", type=path, default=Path("results"), metavar="DIR", help=place)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
