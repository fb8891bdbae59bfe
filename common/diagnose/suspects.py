"""Which framework is wrong, in which tensor and at which step first, and what tells so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Weights
from common.compare.checks import Run, head
from common.compare.collect import LoadedRecord
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult
from common.diagnose.explanations import explanations

WHAT: Final = {
    "layers": "It starts from the same weights, but the output of this layer is off, as the first.",
    "forward": "It starts from the same weights, but its first logits are off: the net differs.",
    "loss": "Its first logits are right, but the loss of its first step is off: the cause is how "
    "the minibatch is split, or what the net does only in training.",
    "gradient": "Its first logits and first loss are right, but its first gradient is off.",
    "losses": "Its first logits, first loss and first gradient are right, but a later loss is off: "
    "the cause is what an update leaves, on all devices or on some.",
    "weights": "Its logits, losses and first gradient are right, but weights are off in the end.",
    "steps": "Its beginning is right, but a step from the run's own weights has a wrong result.",
    "layers_after": "Its logits were right before training, but the output of this layer is off "
    "at the end, as the first.",
    "outcome": "Its weights are right in the end, but their logits are off.",
}
"""What a divergence tells, in the order in which a run computes."""

ENDED, NEVER, LATE = -1, 99, 10
"""Ranks of a failed run, of a record that cannot be used, and of what shows in no array."""


@dataclass(frozen=True)
class Divergence:
    """Where a run is wrong first; `rank` is its place in the order of computing.

    It shows in `array`, computed at `step`; `tensor` is what is wrong. Each may be empty.
    """

    rank: int
    what: str
    step: str = ""
    tensor: str = ""
    array: str = ""


@dataclass(frozen=True)
class FailedRun:
    """A run that failed, and what shows first that it is wrong."""

    found: LoadedRecord
    examined: SuiteResult
    divergence: Divergence

    def order(self) -> tuple[int, bool, int]:
        """What is told first: what comes first in a run, float64 before float32, few devices."""
        run = self.found.run
        rounded = run is not None and run.record.config.dtype != "float64"
        return self.divergence.rank, rounded, self.found.devices


@dataclass(frozen=True)
class Suspect:
    """A framework whose runs of a chapter failed: the failures, the most telling one first.

    Of that one, `tensor` is what is wrong as far as the arrays tell, and `evidence` says how they
    do. `decided` is false where no majority of the runs agrees on something else.
    """

    framework: str
    chapter: str
    failures: list[FailedRun]
    tensor: str
    evidence: list[str]
    decided: bool

    @property
    def divergence(self) -> Divergence:
        """The most telling divergence."""
        return self.failures[0].divergence

    @property
    def ended(self) -> bool:
        """Whether its run failed by itself."""
        return self.divergence.rank == ENDED

    @property
    def unusable(self) -> bool:
        """Whether its record is missing, or cannot be compared."""
        return self.divergence.rank == NEVER


def suspects(examined: Sequence[SuiteResult]) -> list[Suspect]:
    """Every framework with failures, by chapter; those that diverge in a tensor come first."""
    groups: dict[tuple[str, str], list[FailedRun]] = {}
    for result in examined:
        for found in result.found:
            if divergence := first_divergence(found, result):
                runs = groups.setdefault((found.framework, result.suite.chapter), [])
                runs.append(FailedRun(found, result, divergence))
    made = [_suspect(*who, sorted(runs, key=FailedRun.order)) for who, runs in groups.items()]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))


def _suspect(framework: str, chapter: str, failures: list[FailedRun]) -> Suspect:
    """What the arrays of the first failure tell, and whether there are runs that tell otherwise."""
    first = failures[0]
    run, shown, result = first.found.run, first.divergence, first.examined
    told, decided = [], True
    if run is not None and shown.array:
        reference = result.reference(run)
        diverged = [name for check in result.checks(first.found) for name in check.diverged]
        told = explanations(run, head(run, reference.arrays), diverged)
        others = [each for each in result.found if each.run and each.run.shards == run.shards]
        passed = [x for x in others if all(check.passed for check in result.checks(x))]
        decided = reference.independent or 2 * len(passed) > len(others)
    tensor = [*filter(None, (each.tensor for each in told)), shown.tensor or shown.array][0]
    evidence = [each.text for each in told]
    return Suspect(framework, chapter, failures, tensor, evidence, decided)


def first_divergence(found: LoadedRecord, examined: SuiteResult) -> Divergence | None:
    """Where a run diverges first; None if it passed every check."""
    failed = {each.check: each for each in examined.checks(found) if not each.passed}
    if not failed:
        return None
    first = next(iter(failed.values()))
    if found.run is None or first.tolerance is None:
        return _of_record(found, first)
    run, expected = found.run, examined.reference(found.run).arrays
    return _of_numbers(run, head(run, expected), failed)


def _of_record(found: LoadedRecord, check: Check) -> Divergence:
    """A record that is missing, cannot be trusted, or lacks arrays."""
    failure = found.record.failure if found.record else None
    if failure is None:
        rank = ENDED if found.run else NEVER
        return Divergence(rank, check.note, tensor=check.where.rpartition("/")[2])
    when = "" if failure.step is None else f"step {failure.step}"
    if when and failure.device is not None:
        when = f"found after {when}, where copies are compared"
    return Divergence(ENDED, check.note, when, failure.tensor)


def _of_numbers(run: Run, expected: Weights, failed: Mapping[str, Check]) -> Divergence:
    """The first divergence in the order of computing."""
    loss = _first_loss(run, expected, failed)
    shown = {**failed}
    if loss:
        shown["loss" if loss == 1 else "losses"] = failed["trajectory"]
    name = next((name for name in WHAT if name in shown), "")
    if not name:
        check = next(iter(failed.values()))
        what = check.note or check.where
        if not check.note and check.distance is not None:
            what = f"{check.distance:.2g} {check.where}, where {check.tolerance:g} is allowed"
        return Divergence(LATE, f"{HEADINGS[check.check]}: {what}")
    check, what, tensor = shown[name], WHAT[name], ""
    array = check.diverged[-1 if name == "gradient" else 0]  # gradients: from the last layer
    if name == "steps":
        array = check.array
        tensor = array if array != "loss" else ""
    elif "/" in array and not array.startswith("logits"):
        tensor = array.rpartition("/")[2]
    if name in ("gradient", "weights"):
        what += f" In {len(check.diverged)} tensors, in the order of computing here first."
    steps = dict.fromkeys(("layers", "forward"), "before step 1") | {"steps": f"step {check.step}"}
    steps |= {"loss": "step 1", "gradient": "step 1", "losses": f"step {loss}"}
    step = steps.get(name, f"after step {len(run.record.losses)}")
    return Divergence(list(WHAT).index(name), what, step, tensor, array)


def _first_loss(run: Run, expected: Weights, failed: Mapping[str, Check]) -> int:
    """The first step, counted from 1, whose loss is beyond its tolerance; 0 if none is."""
    limit = failed["trajectory"].tolerance if "trajectory" in failed else None
    if limit is None:
        return 0
    ours, theirs = head(run, run.arrays)["losses"], expected["losses"]
    with np.errstate(over="ignore"):
        off = np.abs(ours - theirs) > limit * np.abs(theirs).max()
    return int(off.argmax()) + 1
