"""What runs are compared with: the exact answer where there is one, else what most of them say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.base.arrays import Weights
from common.compare.checks import Run, reference
from common.compare.collect import Found, identity


@dataclass(frozen=True)
class Answer:
    """What runs are compared with: the entry-wise median of some runs of one identity.

    `runs` is their number. `settled` says that other runs have agreed on it than those that are
    compared with it.
    """

    name: str
    identity: dict[str, Any]
    arrays: Weights
    runs: int
    settled: bool = False

    def suits(self, run: Run) -> bool:
        """Whether a run computed the same thing, in whatever dtype."""
        return {**self.identity, "dtype": ""} == {**identity(run.record), "dtype": ""}


def answers_of(found: Sequence[Found]) -> dict[int | None, Answer]:
    """The answers that the runs of a suite agree on: one for all, or for each number of shards."""
    groups: dict[int | None, list[Run]] = {}
    for each in found:
        if each.run:
            groups.setdefault(each.run.shards, []).append(each.run)
    return {
        shards: Answer(
            f"the median of {len(runs)} {runs[0].record.config.dtype} runs",
            identity(runs[0].record),
            reference(runs),
            len(runs),
        )
        for shards, runs in groups.items()
    }


def expected_of(
    found: Sequence[Found], exact: Mapping[int | None, Answer]
) -> dict[int | None, Answer]:
    """What each run is compared with: its `exact` answer, if there is one, else the median."""
    answers = answers_of(found)
    for run in (each.run for each in found if each.run):
        if run.shards in exact and exact[run.shards].suits(run):
            answers[run.shards] = replace(exact[run.shards], settled=True)
    return answers
