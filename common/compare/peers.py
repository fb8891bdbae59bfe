"""What the runs of a suite are compared with: each other, runs of other suites, and NumPy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.base.arrays import Array, Weights
from common.chapters.suites import Suite
from common.compare.recorded_steps import Recomputed
from common.compare.runs import RecordedRun, identity
from common.records.trace import expected_arrays

Answer = tuple[tuple[str, Any], ...]
"""The settings that decide the numbers of a run, in whatever dtype."""

Steps = Mapping[RecordedRun, Recomputed | None]
"""NumPy's steps by run; None: the run keeps none."""


@dataclass(frozen=True)
class Reference:
    """The entry-wise median of all runs with the same answer."""

    name: str
    arrays: Weights
    runs: Sequence[RecordedRun]


@dataclass(frozen=True)
class Peers:
    """What each of a suite's `runs` is compared with.

    `alone` are runs on one device that another suite has for this one, `repeated` those that its
    runs repeat on GPUs or after a resumption.
    """

    suite: Suite
    runs: Sequence[RecordedRun]
    steps: Steps
    references: Mapping[Answer, Reference]
    alone: Sequence[RecordedRun] = ()
    repeated: Sequence[RecordedRun] = ()

    def reference(self, run: RecordedRun) -> Reference:
        return self.references[answer_of(run)]

    def others(self, run: RecordedRun) -> Weights:
        """The reference's arrays; none if that is the run itself."""
        reference = self.reference(run)
        return {} if reference.runs == [run] else reference.arrays

    def numpys(self, run: RecordedRun) -> Recomputed:
        """NumPy's steps of a run; nothing in it if there are none."""
        return self.steps.get(run) or Recomputed()

    def expected(self, run: RecordedRun) -> Weights:
        """What a run should have computed: by NumPy's steps, else by the others."""
        return self.others(run) | self.numpys(run).expected


def answer_of(run: RecordedRun) -> Answer:
    return tuple(item for item in identity(run.record).items() if item[0] != "dtype")


def references_of(
    runs: Iterable[RecordedRun], wrong: Iterable[RecordedRun] = ()
) -> dict[Answer, Reference]:
    """The references for runs of one dtype, by answer; of `wrong` runs only if all are."""
    groups: dict[Answer, list[RecordedRun]] = {}
    for run in runs:
        groups.setdefault(answer_of(run), []).append(run)
    wrong = {*wrong}
    references = {}
    for answer, group in groups.items():
        right = [run for run in group if run not in wrong] or group
        dtype, several = right[0].record.config.dtype, len(right) > 1
        name = f"the median of {len(right)} {dtype} runs" if several else f"the other {dtype} run"
        references[answer] = Reference(name, median(right), right)
    return references


def median(runs: Sequence[RecordedRun]) -> Weights:
    """The entry-wise median of finite arrays of the right shape."""
    groups: dict[str, list[Array]] = {}
    for run in runs:
        for name, (shape, _) in expected_arrays(run.record).items():
            values = run.arrays.get(name, np.empty(0))
            measured = not name.startswith(("trace/", "test/", "probe/")) and values.shape == shape
            if measured and np.isfinite(values).all():
                groups.setdefault(name, []).append(values.astype(np.float64))
    return {name: np.median(values, axis=0) for name, values in groups.items()}
