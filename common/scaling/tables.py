"""The tables: costs, allreduces measured and predicted, and the curve of a cluster."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import Link, seconds as on_cluster, winners
from common.scaling.measure import CHUNKS, Compared, Costs, Measured
from common.scaling.units import of_bytes, rate, seconds
from common.terminal.tables import table

FACTOR: Final = 2
"""By how much a prediction may be off before the output says so."""

COUNTS: Final = tuple(2**power for power in range(1, 7))
"""The numbers of devices of the cluster."""


def parts(measured: Measured, link: Link) -> Iterator[RenderableType]:
    """All that is printed, in order."""
    machine = measured.machine
    versions = ", ".join(f"{name} {each}" for name, each in measured.versions.items())
    yield (
        f"MEASURED on {measured.created[:10]}, on virtual devices of {measured.framework} that "
        f"share one machine: {machine['processor']}, {machine['cores']} cores, "
        f"threads: {measured.threads}; {versions}."
    )
    yield costs_table(measured.costs)
    yield compared_table(measured.compared)
    yield verdict(measured.compared)
    yield (
        "PREDICTED, not measured: a cluster of equal devices, each with one full-duplex link of "
        f"latency {seconds(link.latency)} and {rate(1 / link.per_byte)}, which adds "
        f"{rate(1 / link.per_byte_added)}."
    )
    yield cluster_table(max(each.entries for each in measured.compared), link)


def costs_table(costs: Costs) -> Table:
    """The costs of a vector of each length, as they were measured."""
    headings = ["vector", "message", "addition", *(f"cut in {chunks}" for chunks in CHUNKS)]
    made = table(headings, title="measured on two devices", caption="cut: and joined", left=())
    columns = costs.message, costs.addition, *costs.cut
    for entries, *taken in zip(costs.entries, *columns, strict=True):
        made.add_row(of_bytes(entries), *map(seconds, taken))
    return made


def compared_table(compared: Sequence[Compared]) -> Table:
    """Every allreduce as it was measured, and as the costs predict it."""
    headings = ["vector", "k", "algorithm", "measured", "predicted", "ratio"]
    made = table(headings, title="allreduce on k devices", left=(2,))
    for (entries, k), group in groupby(compared, key=lambda each: (each.entries, each.devices)):
        for each in group:
            cells = [of_bytes(entries), str(k), each.algorithm, seconds(each.measured)]
            if each.predicted:
                cells += [seconds(each.predicted), f"{each.predicted / each.measured:.2f}"]
            made.add_row(*cells)
        made.add_section()
    return made


def verdict(compared: Sequence[Compared]) -> str:
    """The range of predicted over measured, and the predictions that are off."""
    ratios = {each: each.predicted / each.measured for each in compared if each.predicted}
    off = [
        f"{each.algorithm} of {of_bytes(each.entries)} on {each.devices}"
        for each, ratio in ratios.items()
        if not 1 / FACTOR <= ratio <= FACTOR
    ]
    return (
        f"Predicted over measured: {min(ratios.values()):.2f} to {max(ratios.values()):.2f}. Off "
        f"by more than a factor of {FACTOR}: {', '.join(off) or 'none'}. `native` has no schedule "
        "to go by."
    )


def cluster_table(entries: int, link: Link) -> Table:
    """The predicted times of one vector's allreduce, from 2 to 64 devices of a cluster."""
    title = f"allreduce of {of_bytes(entries)} on k devices of the cluster"
    caption = "✓: the fastest, and all that are as fast within 1 %"
    made = table(["k", *SCHEDULES], title=title, caption=caption, left=())
    for k in COUNTS:
        times = {name: on_cluster(name, k, entries, link) for name in SCHEDULES}
        best = winners(times)
        cells = [f"{seconds(time)} {'✓' if name in best else ' '}" for name, time in times.items()]
        made.add_row(str(k), *cells)
    return made
