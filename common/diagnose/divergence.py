"""Where a run that is wrong diverges first: in which tensor, at which step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from common.base.arrays import Weights
from common.compare.checks import Run, head
from common.compare.collect import LoadedRecord
from common.compare.distances import distance
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult

ENDED, NEVER, LATE = -1, 99, 10
"""Ranks of a run that ended itself, of a record that cannot be used, and of what no array shows."""


@dataclass(frozen=True)
class Divergence:
    """Where a run is wrong first. `rank` orders divergences as a run comes past them.

    `array` is where it shows, `entry` the entry that is farthest off, `step` when that was
    computed, and `tensor` what it says is wrong. Each may be empty.
    """

    rank: int
    what: str
    step: str = ""
    tensor: str = ""
    array: str = ""
    entry: tuple[int, ...] = ()


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
    """A record that is not there, cannot be trusted, or lacks arrays."""
    failure = found.record.failure if found.record else None
    if failure is None:
        rank = ENDED if found.run else NEVER
        return Divergence(rank, check.note, tensor=check.where.rpartition("/")[2])
    when = "" if failure.step is None else f"step {failure.step}"
    if when and failure.device is not None:
        when = f"found after {when}, where copies are compared"
    return Divergence(ENDED, check.note, when, failure.tensor)


def _of_numbers(run: Run, expected: Weights, failed: Mapping[str, Check]) -> Divergence:
    """What diverges first, in the order in which a run computes it."""
    loss = _first_loss(run, expected, failed)
    end = f"after step {len(run.record.losses)}"
    if "forward" in failed:
        what = "It starts from the same weights, but its first logits are off: the net differs."
        divergence = Divergence(0, what, "before step 1", array="logits/before")
    elif loss == 1:
        what = (
            "Its first logits are right, but the loss of its first step is off: the cause is how "
            "the minibatch is split, or what the net does only in training."
        )
        divergence = Divergence(1, what, "step 1", array="losses", entry=(0,))
    elif "gradient" in failed:
        divergence = _of_gradient(failed["gradient"].diverged, expected)
    elif loss:
        what = (
            "Its first logits, first loss and first gradient are right, but a later loss is off: "
            "the cause is what an update leaves, on all devices or on some."
        )
        if weights := failed.get("weights"):
            worst = weights.where.partition("/")[2]
            what += f" In the end {len(weights.diverged)} weights are off, most of all {worst}."
        divergence = Divergence(3, what, f"step {loss}", array="losses", entry=(loss - 1,))
    elif "weights" in failed:
        diverged = failed["weights"].diverged
        what = (
            "Its logits, losses and first gradient are right, but weights are off in the end "
            f"({len(diverged)} of them)."
        )
        divergence = Divergence(4, what, end, diverged[0].partition("/")[2], diverged[0])
    elif "steps" in failed:
        what = "Its beginning is right, but a step from the run's own weights has a wrong result."
        array = failed["steps"].array
        step = f"step {failed['steps'].step}"
        divergence = Divergence(4, what, step, "" if array == "loss" else array)
    elif "outcome" in failed:
        what = "Its weights are right in the end, but their logits are off."
        divergence = Divergence(5, what, end, array="logits/after")
    else:
        divergence = _of_figures(next(iter(failed.values())))
    if divergence.entry or divergence.array not in expected:
        return divergence
    return replace(
        divergence, entry=distance(run.arrays[divergence.array], expected[divergence.array])[1]
    )


def _of_gradient(diverged: Sequence[str], expected: Weights) -> Divergence:
    """A first gradient that is off: going back from the loss, the last tensor is the first."""
    every = [name for name in expected if name.startswith("gradients/")]
    what = "Its first logits and first loss are right, but its first gradient is off, in "
    tensor = "all gradients"
    if len(diverged) == len(every):
        what += "every tensor."
    else:
        what += f"{len(diverged)} of {len(every)} tensors; going back from the loss, here first."
        tensor = diverged[-1].partition("/")[2]
    return Divergence(2, what, "step 1", tensor, diverged[-1])


def _of_figures(check: Check) -> Divergence:
    """What no array shows: another number of devices, epochs, accuracies."""
    if check.note or check.distance is None:
        return Divergence(LATE, f"{HEADINGS[check.check]}: {check.note or check.where}")
    far = f"{check.distance:.2g} {check.where}, where {check.tolerance:g} is allowed"
    return Divergence(LATE, f"{HEADINGS[check.check]}: {far}")


def _first_loss(run: Run, expected: Weights, failed: Mapping[str, Check]) -> int:
    """The first step, counted from 1, whose loss is too far off; 0 if none is."""
    limit = failed["trajectory"].tolerance if "trajectory" in failed else None
    if limit is None:
        return 0
    ours, theirs = head(run, run.arrays)["losses"], expected["losses"]
    with np.errstate(over="ignore"):
        off = np.abs(ours - theirs) > limit * np.abs(theirs).max()
    return int(off.argmax()) + 1
