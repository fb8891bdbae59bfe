"""Times every framework and the usual high-level loops; writes bench.json after each round.

python -m bench --python jax=.nox/bench-jax/bin/python --out results
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from bench.plan import WORKLOADS, Entry, entries
from bench.report import HEADINGS, Bench, Samples
from common.backends.frameworks import FRAMEWORKS, framework_and_python
from common.base.errors import RunError
from common.base.files import require_file, write_text
from common.base.machine import describe_machine, gpus_here, now
from common.terminal.command import DEVICES, REPEATS, Parser, count, path, status
from common.terminal.tables import table

Outputs = dict[Entry, list[dict[str, Any]]]
"""By entry, what the process that measured it has told in each round."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and writes. Returns 0, 1 (a measurement failed), 2 (a bad request), 130 or 143."""
    command = parser()
    return status(command.prog, lambda: measure_all(command.parse_args(argv)))


def measure_all(flags: argparse.Namespace) -> None:
    """Measures round by round. Raises RequestError or RunError."""
    pythons = dict(flags.python)
    frameworks = tuple(name for name in FRAMEWORKS if name in pythons)
    plan = entries(frameworks, tuple(flags.chapters), flags.gpus)
    path = flags.out / "bench.json"
    require_file(path, "--out")
    outputs: Outputs = {entry: [] for entry in plan}
    failed: dict[Entry, str] = {}
    for number in range(1, flags.rounds + 1):
        for place, entry in enumerate(list(outputs), start=1):
            begun = time.perf_counter()
            try:
                outputs[entry].append(measure(entry, pythons[entry.framework]))
            except RunError as error:
                failed[entry] = str(error)
                del outputs[entry]
            said = f"{failed.get(entry, entry.key())}, {time.perf_counter() - begun:.0f} s"
            progress = f"round {number}/{flags.rounds}, {place}/{len(plan)}: {said}"
            print(progress, file=sys.stderr, flush=True)
        if not outputs:
            raise RunError("; ".join(failed.values()))
        # If the benchmark is stopped, the finished rounds stay.
        bench = results(outputs, failed)
        write_text(path, bench.model_dump_json(by_alias=True, indent=2) + "\n")
    show(bench)
    if failed:
        raise RunError(f"{len(failed)} of {len(plan)} could not be timed, see above")


def results(outputs: Outputs, failed: Iterable[Entry]) -> Bench:
    """The content of bench.json."""
    (entry, rounds), *_ = outputs.items()
    samples = []
    for each, runs in outputs.items():
        figures = {name: [run["figures"][name] for run in runs] for name in rounds[0]["figures"]}
        samples.append(Samples(**vars(each), figures=figures))
    return Bench(
        created=now(),
        machine=describe_machine() | (gpus_here() if entry.kind == "gpu" else {}),
        versions={entry.framework: runs[0]["versions"] for entry, runs in outputs.items()},
        data=rounds[0]["data"],
        rounds=len(rounds),
        failed=[entry.key() for entry in failed],
        samples=samples,
    )


def show(bench: Bench) -> None:
    """Prints the table."""
    console = Console(highlight=False)
    rows = table(HEADINGS, bench.rows(), left=range(3))
    for column in rows.columns[:3]:
        column.no_wrap = True
    console.print(rows)
    console.print(bench.provenance(), soft_wrap=True)


def measure(entry: Entry, python: str) -> dict[str, Any]:
    """The output of the measuring process. Raises RunError if it failed."""
    words = [entry.framework, entry.chapter, entry.contender, str(entry.devices)]
    words += [f"--kind={entry.kind}", f"--started={time.time()!r}"]
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
    output: dict[str, Any] = json.loads(lines[-1])
    return output


def parser() -> Parser:
    command = Parser("python -m bench", __doc__)
    add = command.add_argument
    add(
        "--python",
        type=framework_and_python,
        action="append",
        required=True,
        metavar="FRAMEWORK=PYTHON",
        help="a framework, and the Python that has it and its rivals; repeat it for others",
    )
    gpus = "time ours on 1 and N GPUs, and rivals on one, instead of CPU devices"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    add("--chapters", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), help="only these")
    rounds = "number of rounds; each times everything (%(default)s)"
    add("--rounds", type=count(REPEATS), default=3, metavar="N", help=rounds)
    place = "where bench.json is written (%(default)s)"
    add("--out", type=path, default=Path("results"), metavar="DIR", help=place)
    return command


if __name__ == "__main__":
    raise SystemExit(main())
