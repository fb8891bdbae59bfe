"""The tables: allreduces measured and predicted, and the curve of a cluster."""

from collections.abc import Iterable
from typing import Final

from rich.table import Table

from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import Link, seconds as on_cluster, winners
from common.scaling.measure import Compared
from common.scaling.units import of_bytes, seconds
from common.terminal.tables import table

COUNTS: Final = (2, 4, 8, 16, 32, 64)
"""The numbers of devices of the cluster."""


def compared_table(compared: Iterable[Compared]) -> Table:
    """Every allreduce as it was measured, and as the costs predict it."""
    headings = ["vector", "k", "algorithm", "measured", "predicted", "ratio"]
    made = table(headings, title="allreduce on k devices", left=(2,))
    for each in compared:
        cells = [of_bytes(each.entries), str(each.devices), each.algorithm, seconds(each.measured)]
        if predicted := each.predicted():
            cells += [seconds(predicted), f"{predicted / each.measured:.2f}"]
        # The framework's own comes last, and has no schedule to go by.
        made.add_row(*cells, end_section=each.costs is None)
    return made


def cluster_table(entries: int, link: Link) -> Table:
    """The predicted times of one vector's allreduce on a cluster."""
    title = f"allreduce of {of_bytes(entries)} on k devices of the cluster"
    caption = "✓: the fastest, and all that are as fast within 1 %"
    made = table(["k", *SCHEDULES], title=title, caption=caption, left=())
    for k in COUNTS:
        times = {name: on_cluster(name, k, entries, link) for name in SCHEDULES}
        best = winners(times)
        cells = [f"{seconds(time)} {'✓' if name in best else ' '}" for name, time in times.items()]
        made.add_row(str(k), *cells)
    return made
