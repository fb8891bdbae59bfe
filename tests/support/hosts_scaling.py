"""Measures between virtual hosts, several times, and prints the medians as tables for a page.

PYTHONPATH=. python tests/support/hosts_scaling.py pytorch .nox/pytorch/bin/python --hosts 3
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from hosts_cluster import Hosts, why_not
from hosts_grid import together

from common.scaling.formulas import ITEM
from common.scaling.results import Compared, Line, Measured, Trained, read_scaling
from common.scaling.units import of_bytes, rate, seconds

Row = Compared | Trained


def measured(hosts: Hosts, framework: str, python: str, folder: Path) -> Measured:
    """What one run finds, on all of the hosts, with a thread for each."""
    command = [python, "-m", "common.scaling", f"--framework={framework}", f"--out={folder}"]
    if trouble := together(hosts, len(hosts.nodes), *command, "--threads=1", "--quiet"):
        raise SystemExit(trouble)
    return read_scaling(folder / "scaling.json").measured


def pages(runs: Sequence[Measured]) -> Iterator[str]:
    """The tables, line by line."""
    yield "| | short | medium | long |"
    yield "| --- | ---: | ---: | ---: |"
    for what in ("message", "addition"):
        pieces = [getattr(run.costs, what).pieces() for run in runs]
        cells = [_constants(lines) for lines in zip(*pieces, strict=True)]
        yield f"| {what} | {' | '.join(cells)} |"
    yield ""
    yield "| what is summed | algorithm | measured | at once | ratio | in turn | ratio |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for each in zip(*(run.compared for run in runs), strict=True):
        yield _row(of_bytes(each[0].entries), each)
    for steps in zip(*(run.over.steps for run in runs if run.over), strict=True):
        yield _row("step of LeNet", steps)
    computing = median(run.over.steps[0].computing for run in runs if run.over)
    yield f"\nA step computes for {seconds(computing)}."


def _constants(lines: Sequence[Line]) -> str:
    fixed, per_entry = (
        median(getattr(each, name) for each in lines) for name in ("fixed", "per_entry")
    )
    return seconds(fixed) + (f", {rate(ITEM / per_entry, 'B')}" if per_entry else "")


def _row(what: str, found: Sequence[Row]) -> str:
    cells = [what, found[0].algorithm, seconds(median(each.measured for each in found))]
    for name in ("predicted", "in_turn"):
        said = [getattr(each, name) for each in found]
        if None in said:
            cells += ["–", "–"]
        else:
            ratios = [one / each.measured for one, each in zip(said, found, strict=True)]
            cells += [seconds(median(said)), f"{median(ratios):.2f}"]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measures and prints. Returns 1 where there are no virtual hosts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework")
    parser.add_argument("python")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    if missing := why_not():
        print(missing, file=sys.stderr)
        return 1
    with Hosts(flags.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        runs = [
            measured(hosts, flags.framework, flags.python, Path(folder))
            for _ in range(flags.rounds)
        ]
    print("\n".join(pages(runs)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
