"""The runs of a suite, and what they are compared with: each other, other suites, and NumPy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.base.arrays import Array, Weights
from common.chapters.suites import Suite
from common.compare.recorded_steps import Recomputed
from common.compare.runs import RecordedRun, identity
from common.records.record import Record
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
class LoadedRecord:
    """What was found of one expected record: a run to compare, or the trouble with it."""

    framework: str
    devices: int
    run: RecordedRun | None
    trouble: str = ""
    record: Record | None = None


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with an entry for each expected record, and what its runs are compared with.

    `lacking` says why some of the frameworks have no such runs. `alone` are runs on one device
    that another suite has for this one, `repeated` those that its runs repeat on GPUs or after a
    resumption.
    """

    suite: Suite
    found: Sequence[LoadedRecord]
    lacking: Mapping[str, str] = field(default_factory=dict)
    steps: Steps = field(default_factory=dict)
    references: Mapping[Answer, Reference] = field(default_factory=dict)
    alone: Sequence[RecordedRun] = ()
    repeated: Sequence[RecordedRun] = ()

    @property
    def runs(self) -> list[RecordedRun]:
        return [entry.run for entry in self.found if entry.run]

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
