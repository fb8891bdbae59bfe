"""How much of an accuracy is chance, as the page shows it: the figures of `nox -s seeds`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.base.errors import RunError
from common.report.figures import Picture, dots
from common.report.provenance import Table
from common.seeds.spread import read_spread
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
    try:
        spread = read_spread(folder / FOLDER)
    except RunError as error:
        return Chance(str(error))
    if spread is None:
        return None
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


def _table(caption: str, rows: Rows) -> Table:
    return Table(caption, rows[0], rows[1:])
