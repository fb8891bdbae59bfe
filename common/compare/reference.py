"""What runs are compared with: the exact result if there is one, else what most say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.base.arrays import Weights
from common.compare.checks import Run, median
from common.compare.collect import LoadedRecord, identity


@dataclass(frozen=True)
class Reference:
    """What runs are compared with: the entry-wise median of some runs of one identity.

    `runs` is their number. `independent` says that other runs have agreed on it than those that are
    compared with it.
    """

    name: str
    identity: dict[str, Any]
    arrays: Weights
    runs: int
    independent: bool = False

    @property
    def alone(self) -> bool:
        """Whether it is one run, and so the very one that is compared with it."""
        return self.runs < 2 and not self.independent

    def suits(self, run: Run) -> bool:
        """Whether a run computed the same thing, in whatever dtype."""
        return {**self.identity, "dtype": ""} == {**identity(run.record), "dtype": ""}


def references_of(found: Sequence[LoadedRecord]) -> dict[int | None, Reference]:
    """What the runs of a suite agree on: one for all, or one for each number of shards."""
    groups: dict[int | None, list[Run]] = {}
    for each in found:
        if each.run:
            groups.setdefault(each.run.shards, []).append(each.run)
    return {
        shards: Reference(
            f"the median of {len(runs)} {runs[0].record.config.dtype} runs",
            identity(runs[0].record),
            median(runs),
            len(runs),
        )
        for shards, runs in groups.items()
    }


def expected_of(
    found: Sequence[LoadedRecord], exact: Mapping[int | None, Reference]
) -> dict[int | None, Reference]:
    """What each run is compared with: its `exact` result, if there is one, else the median."""
    references = references_of(found)
    for run in (each.run for each in found if each.run):
        if run.shards in exact and exact[run.shards].suits(run):
            references[run.shards] = replace(exact[run.shards], independent=True)
    return references
