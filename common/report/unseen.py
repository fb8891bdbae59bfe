"""What rounding hides of the steps that were computed again, in words."""

from collections.abc import Sequence

from common.compare.findings import Hidden
from common.compare.suite import Comparison


def unseen(comparison: Comparison) -> list[str]:
    """How much of a step rounding hides at most, and of how many steps too much to compare them."""
    share = max((100 * each.hidden // each.entries for each in _steps([comparison])), default=0)
    most = f"rounding of the weights hides up to {share} % of the entries of a step"
    return [*([most] if share else []), *uncompared([comparison])]


def uncompared(comparisons: Sequence[Comparison]) -> list[str]:
    """Of how many steps it is not known how they moved weights; nothing if of none."""
    steps = _steps(comparisons)
    without = sum(not each.compared for each in steps)
    told = f"how {without} of {len(steps)} steps moved weights was not compared: rounding hides it"
    return [told] if without else []


def _steps(comparisons: Sequence[Comparison]) -> list[Hidden]:
    checks = [check for comparison in comparisons for check in comparison.checks]
    return [each for check in checks for each in check.hidden]
