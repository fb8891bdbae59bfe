"""Runs with a bug in them, and what the comparison answers.

python -m planted.run "sum not mean" jax scratch --steps 3
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from common.backends.interface import Process
from common.base.children import outcomes
from common.base.errors import RunError
from common.base.machine import cores
from common.chapters.suites import SUITES, Suite
from common.compare.comparison import SuiteResult, compare_suite
from common.compare.findings import Check
from common.compare.folder import examine
from common.diagnose.hints import FITS
from common.diagnose.suspects import suspects
from common.grid import get_ready, work
from common.report.text import describe
from common.training.run import Run
from planted.bug import Bug, Runs
from planted.bugs import BUGS
from planted.page import Answer

KNOWN: Final = {f"{suite.chapter} {suite.name}": suite for suite in SUITES}
SHORTER: Final = {"scratch": {"steps": 3, "train_examples": 251}}
"""Settings of a suite in which as much happens in fewer steps: the last minibatch is short."""
Task = tuple[Callable[..., Run], str, int]
"""A kind of run, a chapter and suite, and a number of devices."""
Results = Mapping[str, SuiteResult]
"""What is compared, by chapter and suite."""


@dataclass(frozen=True)
class PlantedRun(Run):
    """A run with a bug in each of its processes."""

    bug: str = ""

    def __call__(self, process: Process) -> None:
        """Trains with the bug."""
        config = self.config
        with BUGS[self.bug].planted(config.framework, config.devices, config.batch_size):
            super().__call__(process)


def work_as(kind: Callable[..., Run], *run: Any) -> None:
    """What the process of a run of a `kind` does: see `common.grid.work`."""
    with patch("common.training.run.Run", kind):
        work(*run)


def make(
    framework: str, folder: str, tasks: Iterable[Task], *fine: int, of: str = "", **more: Any
) -> None:
    """Makes runs, some at a time. Raises RunError if one cannot be made.

    It has been if its status is 0, or one that is `fine`.
    """
    suites = ((kind, KNOWN[name], k) for kind, name, k in tasks)
    runs = ((kind, framework, x.chapter, settings(x, k, folder) | more) for kind, x, k in suites)
    with closing(outcomes(work_as, runs, cores())) as ended:
        for _, code, _, printed in ended:
            if code not in (0, *fine):
                raise RunError(f"{of}{printed}")


def seconds_used() -> float:
    """Seconds of the processor, by this process and those that it has waited for."""
    return sum(os.times()[:4])


def answers(framework: str, names: Sequence[str]) -> Iterator[Answer]:
    """What the comparison says of bugs; raises RunError if a run without a bug is red."""
    get_ready(framework)
    begun, runs = seconds_used(), dict[str, set[int]]()
    bugs = [BUGS[name] for name in names if framework in BUGS[name].wrong]
    for name, devices in chain(*(planned(bug, framework).items() for bug in bugs)):
        suite = KNOWN[name]
        runs.setdefault(name, set()).update(devices)
        runs.setdefault(f"{suite.chapter} {suite.alone_in or suite.name}", set()).add(1)
    right = compared("control", framework, runs)
    if wrong := failed_checks(right, runs):
        raise RunError(f"without a bug, {describe(wrong[0])}")
    yield Answer(bug="control", framework=framework, seconds=seconds_used() - begun)
    for bug in bugs:
        begun = seconds_used()
        answer = answer_to(bug, framework, right)
        yield answer.model_copy(update={"seconds": seconds_used() - begun})


def planned(bug: Bug, framework: str) -> Runs:
    """The runs of a bug that the framework has."""
    return {name: k for name, k in bug.runs.items() if framework not in KNOWN[name].lacking}


def compared(bug: str, framework: str, runs: Mapping[str, Iterable[int]]) -> Results:
    """Makes runs with a bug and compares them. Raises RunError if one cannot be made."""
    tasks = [(partial(PlantedRun, bug=bug), name, k) for name, x in runs.items() for k in x]
    chapters = list(dict.fromkeys(KNOWN[name].chapter for name in runs))
    with TemporaryDirectory(prefix="planted-") as folder:
        make(framework, folder, tasks, 1, of=f"{bug}: ")  # one may have failed by the bug
        results = examine(Path(folder), frameworks=[framework], chapters=chapters)
        return {f"{x.suite.chapter} {x.suite.name}": x for x in results}


def answer_to(bug: Bug, framework: str, right: Results) -> Answer:
    """Makes the runs of a bug and compares them with the right ones."""
    runs = planned(bug, framework)
    with_bug = compared(bug.name, framework, runs)
    results = {name: with_right(result, right[name]) for name, result in with_bug.items()}
    wrong = failed_checks(results, runs)
    plain = any(check.devices in KNOWN[f"{check.chapter} {check.suite}"].devices for check in wrong)
    first = {(check.suite, check.devices): describe(check) for check in wrong[::-1]}
    answer = Answer(bug=bug.name, framework=framework, red=list(first.values())[::-1])
    if wrong:
        answer.caught = "plain" if plain else "grid"
        suspect = suspects(list(results.values()))[0]
        said = [suspect.first.what] if suspect.unusable else suspect.evidence
        answer.named = next(iter(said), "").removeprefix(FITS)
    return answer


def with_right(result: SuiteResult, right: SuiteResult) -> SuiteResult:
    """The runs compared with right ones, which plain `nox` has of other frameworks.

    A run whose inputs a bug has changed has nothing right to be compared with.
    """
    ours, theirs = result.loaded, right.loaded
    peers = replace(
        ours,
        alone=[run for run in (*theirs.runs, *theirs.alone) if run.devices == 1],
        references={**ours.references, **theirs.references},
        steps={**ours.steps, **theirs.steps},
    )
    return compare_suite(peers)


def failed_checks(results: Results, runs: Mapping[str, Iterable[int]]) -> list[Check]:
    """The failed checks of the runs, but for the lack of others: right ones stand in for these."""
    checks = [(name, check) for name, x in results.items() for check in x.comparison.checks]
    failed = [(name, check) for name, check in checks if not check.passed]
    return [x for name, x in failed if x.devices in runs.get(name, ()) and x.check != "peers"]


def settings(suite: Suite, devices: int, folder: str) -> dict[str, Any]:
    less = {} if "preset" in suite.settings else SHORTER.get(suite.chapter, {})
    return {**suite.given(devices, Path(folder)), **less, "quiet": True}


def main(argv: Sequence[str]) -> int:
    """Runs a chapter with a bug in it: the bug, the framework, the chapter, its flags."""
    from common.training.cli import main as run_chapter

    bug, framework, chapter, *flags = argv
    with patch("common.training.run.Run", partial(PlantedRun, bug=bug)):
        return run_chapter(framework, chapter, flags)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
