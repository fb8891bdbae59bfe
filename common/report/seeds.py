"""How much of an accuracy is chance, as the page shows it: the figures of `nox -s seeds`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.base.files import require_small
from common.report.figures import Picture, dots
from common.report.provenance import Table
from common.seeds.spread import FILE, Spread, read_spread
from common.seeds.text import Rows, difference_rows, findings, framework_rows, title

FOLDER: Final = "seeds"
"""Where the seeds' runs and their figures are, below the folder that is compared."""


@dataclass(frozen=True)
class Chance:
    """A line on the setting or on what is wrong with the file, and what the file says."""

    line: str
    picture: Picture | None = None
    tables: list[Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def chance(folder: Path) -> Chance | None:
    """What the seeds below `folder` say; None if there are none."""
    seeds = folder / FOLDER
    try:
        if not (seeds / FILE).exists():
            return None
        require_small(seeds / FILE)
        spread = read_spread(seeds)
    except OSError as error:
        return Chance(f"{seeds / FILE} cannot be read: {error}")
    except RunError as error:
        return Chance(str(error))
    if spread is None or (trouble := _trouble(spread)):
        return Chance(f"{seeds / FILE} cannot be read: {trouble if spread else 'it is no file'}")
    accuracies = {each.framework: each.accuracies for each in spread.frameworks}
    return Chance(
        f"{title(spread)}; written {spread.created}.",
        dots(accuracies, f"{spread.chapter}: test accuracy of every seed"),
        [
            _table("Test accuracy over the seeds", framework_rows(spread)),
            _table("Differences", difference_rows(spread)),
        ],
        list(findings(spread)),
    )


def _trouble(spread: Spread) -> str:
    """What no figures of seeds can be; empty if nothing is wrong. NaN is in no range."""
    if {each.framework for each in spread.frameworks} - set(FRAMEWORKS):
        return "its framework is unknown"
    if any(len(each.accuracies) != len(spread.seeds) for each in spread.frameworks):
        return "not every seed has an accuracy"
    shares = [share for each in spread.frameworks for share in each.accuracies]
    shares += [spread.over_seeds, spread.over_frameworks, spread.test.p_value]
    return "" if all(0 <= share <= 1 for share in shares) else "a share is not in 0 to 1"


def _table(caption: str, rows: Rows) -> Table:
    return Table(caption, rows[0], rows[1:])
