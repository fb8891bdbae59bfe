"""Which framework is wrong, in which tensor and at which step first, and what tells so."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from common.compare.comparison import SuiteResult
from common.compare.distances import first_beyond
from common.compare.findings import HEADINGS, Check
from common.compare.peers import LoadedRecord
from common.compare.runs import RecordedRun
from common.diagnose.hints import FITS, hint

STAGES: Final = {
    "layers": ("before step 1", "Before training, the output of this layer is off, as the first."),
    "forward": ("before step 1", "Its first logits are off: the net differs."),
    "loss": (
        "step 1",
        "Its logits are right, but its first loss is off: the cause is how the minibatch is split, "
        "or what the net does only in training.",
    ),
    "gradient": ("step 1", "Its first loss is right, but its first gradient is off."),
    "losses": (
        "step {loss}",
        "Its first gradient is right, but a later loss is off: the cause is what an update leaves, "
        "on all devices or on some.",
    ),
    "weights": ("after step {last}", "Its losses are right, but weights are off in the end."),
    "steps": ("step {step}", "A step from the run's own weights has a wrong result."),
    "layers_after": (
        "after step {last}",
        "At the end of training, the output of this layer is off, as the first.",
    ),
    "outcome": ("after step {last}", "Its weights are right in the end, but their logits are off."),
}
"""Where a divergence shows and what it tells, in the order in which a run computes."""

ENDED, NEVER, LATE = -1, 99, 10
"""Ranks of a failed run, of a record that cannot be used, and of what shows in no array."""


@dataclass(frozen=True)
class Divergence:
    """Where a run is wrong first; `rank` is its place in the order of computing."""

    entry: LoadedRecord
    result: SuiteResult
    rank: int
    what: str
    step: str = ""
    tensor: str = ""

    def order(self) -> tuple[int, bool, int]:
        """The first in a run, then float64, then few devices."""
        run = self.entry.run
        rounded = run is not None and run.record.config.dtype != "float64"
        return self.rank, rounded, self.entry.devices


@dataclass(frozen=True)
class Suspect:
    """A framework whose runs failed; `decided` if most runs agree on something else."""

    framework: str
    chapter: str
    divergences: list[Divergence]
    evidence: list[str]
    decided: bool

    @property
    def first(self) -> Divergence:
        return self.divergences[0]

    @property
    def ended(self) -> bool:
        return self.first.rank == ENDED

    @property
    def unusable(self) -> bool:
        return self.first.rank == NEVER


def suspects(examined: Sequence[SuiteResult]) -> list[Suspect]:
    """Every framework with failures, by chapter; those that diverge in a tensor come first."""
    groups: dict[tuple[str, str], list[Divergence]] = {}
    for result in examined:
        for entry in result.loaded.found:
            if divergence := first_divergence(entry, result):
                who = entry.framework, result.suite.chapter
                groups.setdefault(who, []).append(divergence)
    wrong = [_suspect(*who, sorted(group, key=Divergence.order)) for who, group in groups.items()]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(wrong, key=lambda suspect: (not suspect.first.tensor, suspect.first.order()))


def _suspect(framework: str, chapter: str, divergences: list[Divergence]) -> Suspect:
    first = divergences[0]
    run, result = first.entry.run, first.result
    evidence = [*islice(filter(None, map(fitting, most_telling(divergences))), 1)]
    if run is None or first.rank in (ENDED, LATE):
        return Suspect(framework, chapter, divergences, evidence, decided=True)
    others = [
        entry for entry in result.loaded.found if entry.run and entry.run.shards == run.shards
    ]
    passed = sum(all(check.passed for check in result.checks(entry)) for entry in others)
    decided = run not in result.loaded.reference(run).runs or 2 * passed > len(others)
    return Suspect(framework, chapter, divergences, evidence, decided)


def most_telling(divergences: Sequence[Divergence]) -> list[Divergence]:
    """Three, as more would take long: a run without a wrong step may differ from wrong ones."""

    def no_wrong_step(each: Divergence) -> bool:
        checks = each.result.checks(each.entry)
        return all(check.passed for check in checks if check.check == "steps")

    return sorted(divergences, key=no_wrong_step)[:3]


def fitting(divergence: Divergence) -> str:
    """A line on what fits a run; empty if nothing does."""
    run, record = divergence.entry.run, divergence.entry.record
    if record and record.failure and record.failure.device is not None:
        why = "a reduction is missing or incomplete, or an operation is not deterministic"
        return f"{FITS}copies of {record.failure.tensor} differ: {why}"
    recomputed = divergence.result.loaded.steps.get(run) if run else None
    with np.errstate(all="ignore"):
        return hint(run, recomputed) if run and recomputed and divergence.tensor else ""


def first_divergence(entry: LoadedRecord, result: SuiteResult) -> Divergence | None:
    """Where a run diverges first; None if it passed every check."""
    failed = {check.check: check for check in result.checks(entry) if not check.passed}
    if not failed:
        return None
    first = next(iter(failed.values()))
    if entry.run and first.tolerance is not None:
        return _of_numbers(entry, entry.run, result, failed)
    failure = entry.record.failure if entry.record else None
    if first.check in ("peers", "devices"):
        return Divergence(entry, result, LATE, first.note, "nothing to compare it with")
    if failure is None:
        rank = ENDED if entry.run else NEVER
        tensor = first.where.rpartition("/")[2]
        return Divergence(entry, result, rank, first.note, "", tensor)
    when = "" if failure.step is None else f"step {failure.step}"
    if when and failure.device is not None:
        when = f"found after {when}, where copies are compared"
    return Divergence(entry, result, ENDED, first.note, when, failure.tensor)


def _of_numbers(
    entry: LoadedRecord, run: RecordedRun, result: SuiteResult, failed: dict[str, Check]
) -> Divergence:
    loss = 0
    if "trajectory" in failed and "trajectory" in run.limits:
        ours = run.compared(run.arrays)["losses"]
        expected = run.compared(result.loaded.expected(run))["losses"]
        loss = first_beyond(ours, expected, run.limits["trajectory"])
        failed["loss" if loss == 1 else "losses"] = failed["trajectory"]
    name = next((name for name in STAGES if name in failed), "")
    if not name:
        check = next(iter(failed.values()))
        return Divergence(entry, result, LATE, f"{HEADINGS[check.check]}: {check.why}")
    check = failed[name]
    step, what = STAGES[name]
    array = check.diverged[-1 if name == "gradient" else 0]  # gradients: from the last layer
    if name == "steps":
        array = check.array
    if name in ("gradient", "weights"):
        what += f" In {len(check.diverged)} tensors, in the order of computing here first."
    tensor = array if array.startswith("logits") else array.rpartition("/")[2]
    step = step.format(loss=loss, step=check.step, last=len(run.record.losses))
    return Divergence(entry, result, list(STAGES).index(name), what, step, tensor)
