"""The tables of what was measured between hosts: allreduces and training steps."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table

from common.scaling.results import Compared, Over, Trained
from common.scaling.units import of_bytes, seconds
from common.terminal.tables import table


def places(over: Over) -> str:
    """Where the devices are, as the end of "on virtual devices"."""
    hosts, processes = len(set(over.hosts)), len(over.hosts)
    shared = f", which share {_machines(over.machines)}" if over.machines < hosts else ""
    return (
        f"in {processes} processes on {hosts} host{'s' * (hosts > 1)}{shared}, joined by "
        f"{over.engine} over {over.transport}"
    )


def _machines(count: int) -> str:
    return "one machine" if count == 1 else f"{count} machines"


def parts(compared: Sequence[Compared], over: Over) -> Iterator[RenderableType]:
    """What is printed, one after the other."""
    k = len(over.hosts)
    for entries, found in groupby(compared, key=lambda each: each.entries):
        yield made(f"allreduce of {of_bytes(entries)} on {k} devices", list(found))
    (computing,) = {each.computing for each in over.steps}
    images = next(each.images for each in over.steps)
    title = (
        f"a step of LeNet on {k} devices, {images} images for each; it computes for "
        f"{seconds(computing)}, then sums each gradient and the loss"
    )
    yield made(title, over.steps)
    yield verdict([*compared, *over.steps], over)


def made(title: str, found: Sequence[Compared | Trained]) -> Table:
    """What was measured for each algorithm, and both predictions, with what they are of that."""
    headings = ("measured", "at once", "ratio", "in turn", "ratio")
    rows = table(["algorithm", *headings], title=title)
    for each in found:
        cells = [seconds(each.measured)]
        for said in (each.predicted, each.in_turn):
            cells += ["–", "–"] if said is None else [seconds(said), f"{said / each.measured:.2f}"]
        rows.add_row(each.algorithm, *cells)
    return rows


def verdict(found: Sequence[Compared | Trained], over: Over) -> str:
    """How good the predictions are, and which of the two applies."""
    at_once = [each.predicted / each.measured for each in found if each.predicted]
    in_turn = [each.in_turn / each.measured for each in found if each.in_turn]
    applies = (
        "Each host has a machine of its own, so the first applies."
        if over.machines == len(set(over.hosts)) == len(over.hosts)
        else "Hosts share processors here, so the second is nearer; waiting for cores adds to it."
    )
    return (
        f"Predicted over measured: {_range(at_once)} if all devices work at once, "
        f"{_range(in_turn)} if they do so in turn. {applies} `native` has no schedule to go by."
    )


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f}"
