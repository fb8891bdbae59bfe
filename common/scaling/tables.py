"""The tables: constants, allreduces measured and predicted, and the curve of a cluster."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from common.scaling.formulas import FORMULAS, ITEM, Link, seconds as on_cluster, winners
from common.scaling.results import LIMITS, Compared, Line, Measured
from common.scaling.units import of_bytes, rate, seconds
from common.terminal.tables import table

FACTOR: Final = 2
"""By how much a prediction may be off before the output says so."""

COUNTS: Final = tuple(2**power for power in range(1, 11))
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
    yield costs_table(measured)
    yield compared_table(measured.compared)
    yield verdict(measured.compared)
    yield (
        "PREDICTED, not measured: a cluster of equal devices, each with one full-duplex link of "
        f"latency {seconds(link.latency)} and {rate(1 / link.per_byte)}, which adds "
        f"{rate(1 / link.per_byte_added)}."
    )
    yield cluster_table(max(each.entries for each in measured.compared), link)


def costs_table(measured: Measured) -> Table:
    """The constants of the model, as they were measured."""
    costs = measured.costs
    headings = [*(f"up to {of_bytes(limit)}" for limit in LIMITS), "beyond that"]
    caption = "the time for each, and the rate of its bytes, where they took any time"
    made = table(["what", *headings], title="measured on two devices", caption=caption)
    names = ("join 1 chunk", *(f"cut and join {n}" for n in (2, 3, 4)))
    cuts = zip(names, costs.cut, strict=True)
    for what, each in [("message", costs.message), ("addition", costs.addition), *cuts]:
        made.add_row(what, *map(_constants, each.pieces()))
    return made


def _constants(line: Line) -> str:
    """The fixed time of a line and, as a rate, its time per byte."""
    per_byte = f" {rate(ITEM / line.per_entry)}" if line.per_entry > 0 else ""
    return f"{seconds(line.fixed)}{per_byte}"


def compared_table(compared: Sequence[Compared]) -> Table:
    """Every allreduce as it was measured, and as the constants predict it."""
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
    """The predicted times of one vector's allreduce, from 2 to 1,024 devices of a cluster."""
    title = f"allreduce of {of_bytes(entries)} on k devices of the cluster"
    caption = "✓: the fastest, and all that are as fast within 1 %"
    made = table(["k", *FORMULAS], title=title, caption=caption, left=())
    for k in COUNTS:
        times = {name: on_cluster(name, k, entries, link) for name in FORMULAS}
        best = winners(times)
        cells = [
            f"{seconds(taken)} {'✓' if name in best else ' '}" for name, taken in times.items()
        ]
        made.add_row(f"{k:,}", *cells)
    return made
