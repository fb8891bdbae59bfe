"""Where a wrong run diverges first: in which tensor, at which step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.base.arrays import Weights
from common.compare.checks import Run, head
from common.compare.collect import LoadedRecord
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult

ENDED, NEVER, LATE = -1, 99, 10
"""Ranks of a failed run, of a record that cannot be used, and of what shows in no array."""


@dataclass(frozen=True)
class Divergence:
    """Where a run is wrong first; `rank` orders divergences as a run comes past them.

    It shows in `array`, of which the first `steps` entries count (0: all), computed at `step`;
    `tensor` is what is wrong. Each may be empty.
    """

    rank: int
    what: str
    step: str = ""
    tensor: str = ""
    array: str = ""
    steps: int = 0


def first_divergence(found: LoadedRecord, examined: SuiteResult) -> Divergence | None:
    """Where a run diverges first; None if it passed every check."""
    failed = {each.check: each for each in examined.checks(found) if not each.passed}
    if not failed:
        return None
    first = next(iter(failed.values()))
    if found.run is None or first.tolerance is None:
        return _of_record(found, first)
    run, expected = found.run, examined.references[found.run.shards].arrays
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
    """The first divergence in the order in which a run computes."""
    loss = _first_loss(run, expected, failed)
    end = f"after step {len(run.record.losses)}"
    if "forward" in failed:
        what = "It starts from the same weights, but its first logits are off: the net differs."
        found = Divergence(0, what, "before step 1", array="logits/before")
    elif loss == 1:
        what = (
            "Its first logits are right, but the loss of its first step is off: the cause is how "
            "the minibatch is split, or what the net does only in training."
        )
        found = Divergence(1, what, "step 1", array="losses", steps=1)
    elif "gradient" in failed:
        found = _of_gradient(failed["gradient"].diverged, expected)
    elif loss:
        what = (
            "Its first logits, first loss and first gradient are right, but a later loss is off: "
            "the cause is what an update leaves, on all devices or on some."
        )
        if weights := failed.get("weights"):
            worst = weights.where.partition("/")[2]
            what += f" In the end {len(weights.diverged)} weights are off, most of all {worst}."
        found = Divergence(3, what, f"step {loss}", array="losses", steps=loss)
    elif weights := failed.get("weights"):
        what = (
            "Its logits, losses and first gradient are right, but weights are off in the end "
            f"({len(weights.diverged)} of them)."
        )
        array = weights.diverged[0]
        found = Divergence(4, what, end, array.partition("/")[2], array)
    elif steps := failed.get("steps"):
        what = "Its beginning is right, but a step from the run's own weights has a wrong result."
        tensor = "" if steps.array == "loss" else steps.array
        found = Divergence(4, what, f"step {steps.step}", tensor, steps.array)
    elif "outcome" in failed:
        what = "Its weights are right in the end, but their logits are off."
        found = Divergence(5, what, end, array="logits/after")
    else:
        check = next(iter(failed.values()))
        what = check.note or check.where
        if not check.note and check.distance is not None:
            what = f"{check.distance:.2g} {check.where}, where {check.tolerance:g} is allowed"
        found = Divergence(LATE, f"{HEADINGS[check.check]}: {what}")
    return found


def _of_gradient(diverged: Sequence[str], expected: Weights) -> Divergence:
    """A first gradient that is off: the last tensor is the first in the backward pass."""
    every = [name for name in expected if name.startswith("gradients/")]
    what = "Its first logits and first loss are right, but its first gradient is off, in "
    if len(diverged) == len(every):
        return Divergence(2, f"{what}every tensor.", "step 1", "all gradients", diverged[-1])
    what += f"{len(diverged)} of {len(every)} tensors; in the backward pass, here first."
    return Divergence(2, what, "step 1", diverged[-1].partition("/")[2], diverged[-1])


def _first_loss(run: Run, expected: Weights, failed: Mapping[str, Check]) -> int:
    """The first step, counted from 1, whose loss is beyond its tolerance; 0 if none is."""
    limit = failed["trajectory"].tolerance if "trajectory" in failed else None
    if limit is None:
        return 0
    ours, theirs = head(run, run.arrays)["losses"], expected["losses"]
    with np.errstate(over="ignore"):
        off = np.abs(ours - theirs) > limit * np.abs(theirs).max()
    return int(off.argmax()) + 1
