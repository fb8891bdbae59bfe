"""Where a wrong run diverges first: in which tensor, at which step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Weights
from common.compare.checks import Run, head
from common.compare.collect import LoadedRecord
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult

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
