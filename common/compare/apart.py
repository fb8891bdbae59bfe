"""How far a run is from what it is compared with, as the finding of a check."""

from collections.abc import Iterable, Mapping, Sequence

from common.compare.checks import Run, head, numerical_checks
from common.compare.distances import Distance, compare
from common.compare.findings import Finding, measured
from common.compare.tolerances import Tolerance


def against(check: str, run: Run, other: Run, scales: Mapping[str, float]) -> Finding:
    """How far two runs are apart that compute the same: what comes nearest to failing."""
    ours, theirs = head(run, run.arrays), head(run, other.arrays)
    return nearest_to_failing(
        farthest(check, name, compare(ours, theirs, prefix, scales), tolerance)
        for name, (prefix, tolerance) in numerical_checks(run).items()
    )


def nearest_to_failing(found: Iterable[Finding]) -> Finding:
    """Of several findings, the one that does."""
    return max(found, key=lambda each: each.share)


def farthest(check: str, quantity: str, found: Sequence[Distance], tolerance: Tolerance) -> Finding:
    """What a check of distances found: the largest, and every array that is too far off."""
    worst = max(found, key=lambda each: each.far)
    diverged = [each.array for each in found if not each.far <= tolerance.limit]
    finding = measured(check, quantity, worst, tolerance)
    return finding.model_copy(update={"diverged": diverged})
