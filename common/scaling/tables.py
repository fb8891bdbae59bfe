"""The tables: what was measured, how well it was predicted, and what was simulated."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from common.scaling.formulas import ITEM, winners
from common.scaling.results import (
    LIMITS,
    Compared,
    Constants,
    Line,
    Measured,
    Over,
    Scaling,
    Step,
    Trained,
)
from common.scaling.training_step import Net, nets, timing
from common.scaling.units import of_bytes, rate, seconds
from common.terminal.tables import table

ALIKE = "✓: the fastest, and all that are as fast within 1 %"

FACTOR = 2
"""By how much a prediction may be off before the output says so."""


def show(scaling: Scaling, console: Console | None = None) -> None:
    """Prints everything."""
    console = console or Console(highlight=False, markup=False)
    for part in parts(scaling):
        console.print(part)
        console.print()


def parts(scaling: Scaling) -> Iterator[RenderableType]:
    """What is printed, one after the other."""
    measured, machine = scaling.measured, scaling.measured.machine
    versions = ", ".join(f"{name} {each}" for name, each in measured.versions.items())
    where = "that share one machine" if measured.over is None else places(measured.over)
    yield (
        f"MEASURED on {measured.created[:10]}, on virtual devices of {measured.framework} {where}: "
        f"{machine['processor']}, {machine['cores']} cores, "
        f"threads: {measured.threads}; {versions}."
    )
    yield costs_table(measured)
    if measured.over is None:
        yield compared_table(measured.compared)
        yield verdict(measured.compared)
    else:
        yield from parts_over_hosts(measured.compared, measured.over)
    yield (
        "SIMULATED: a cluster of equal devices. Each has one full-duplex link; no message is in "
        "the way of another one's link."
    )
    yield constants_table(scaling.constants)
    for net in nets():
        steps = [each for each in scaling.simulated if each.net == net.name]
        yield steps_table(net, steps, scaling.constants)


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
    """What a line says of each time and, as a rate, of each byte."""
    per_byte = f" {rate(ITEM / line.per_entry, 'B')}" if line.per_entry > 0 else ""
    return f"{seconds(line.fixed)}{per_byte}"


def compared_table(compared: Sequence[Compared]) -> Table:
    """Every allreduce as it was measured, beside what the constants predict."""
    sizes = sorted({each.entries for each in compared})
    headings = [
        f"{of_bytes(entries) if what == 'measured' else ''}\n{what}"
        for entries in sizes
        for what in ("measured", "predicted", "ratio")
    ]
    made = table(["\nk", "\nalgorithm", *headings], title="allreduce on k devices", left=(1,))
    ordered = sorted(compared, key=lambda each: each.devices)
    for k, on_k in groupby(ordered, key=lambda each: each.devices):
        rows: dict[str, list[str]] = {}
        for each in sorted(on_k, key=lambda each: each.entries):
            rows.setdefault(each.algorithm, []).extend(_cells(each))
        for name, cells in rows.items():
            made.add_row(str(k), name, *cells)
        made.add_section()
    return made


def _cells(each: Compared) -> list[str]:
    predicted, ratio = each.predicted, each.ratio()
    if predicted is None or ratio is None:
        return [seconds(each.measured), "–", "–"]
    return [seconds(each.measured), seconds(predicted), f"{ratio:.2f}"]


def verdict(compared: Sequence[Compared]) -> str:
    """How good the predictions are, and which ones are not."""
    said: list[str] = []
    off: list[Compared] = []
    for k in sorted({each.devices for each in compared}):
        found = [(each, each.ratio() or 0) for each in compared if each.devices == k]
        ratios = [ratio for _, ratio in found if ratio]
        said.append(f"{min(ratios):.2f} to {max(ratios):.2f} on {k}")
        off += [each for each, ratio in found if ratio and not 1 / FACTOR <= ratio <= FACTOR]
    which = [f"{each.algorithm} of {of_bytes(each.entries)} on {each.devices}" for each in off]
    return (
        f"Predicted over measured: {', '.join(said)} devices. Off by more than a factor of "
        f"{FACTOR}: {', '.join(which) or 'none'}. `native` has no schedule to go by."
    )


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


def parts_over_hosts(compared: Sequence[Compared], over: Over) -> Iterator[RenderableType]:
    """What is printed, one after the other."""
    k = len(over.hosts)
    for entries, found in groupby(compared, key=lambda each: each.entries):
        yield both_ways(f"allreduce of {of_bytes(entries)} on {k} devices", list(found))
    (computing,) = {each.computing for each in over.steps}
    images = next(each.images for each in over.steps)
    title = (
        f"a step of LeNet on {k} devices, {images} images for each; it computes for "
        f"{seconds(computing)}, then sums each gradient and the loss"
    )
    yield both_ways(title, over.steps)
    yield verdict_over_hosts([*compared, *over.steps], over)


def both_ways(title: str, found: Sequence[Compared | Trained]) -> Table:
    """What was measured for each algorithm, and both predictions, with what they are of that."""
    headings = ("measured", "at once", "ratio", "in turn", "ratio")
    rows = table(["algorithm", *headings], title=title)
    for each in found:
        cells = [seconds(each.measured)]
        for said in (each.predicted, each.in_turn):
            cells += ["–", "–"] if said is None else [seconds(said), f"{said / each.measured:.2f}"]
        rows.add_row(each.algorithm, *cells)
    return rows


def verdict_over_hosts(found: Sequence[Compared | Trained], over: Over) -> str:
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


def constants_table(constants: Constants) -> Table:
    """What the cluster is made of, and where that comes from."""
    made = table(["constant", "value", "source"], title="the simulated cluster", left=(0, 2))
    rows = (
        ("latency of a message", seconds(constants.latency.value), constants.latency.source),
        ("bandwidth of a link", rate(constants.bandwidth.value, "B"), constants.bandwidth.source),
        ("addition", rate(constants.addition.value, "B"), constants.addition.source),
        ("computing", rate(constants.rate.value, "op"), constants.rate.source),
    )
    for row in rows:
        made.add_row(*row)
    return made


def steps_table(net: Net, steps: Sequence[Step], constants: Constants) -> Table:
    """What each algorithm adds to a step that only computes."""
    alone = timing(net, "star", 1, constants.link(), constants.rate.value)
    title = (
        f"{net.name}, {net.parameters:,} parameters, buckets: {len(net.buckets())}. On each of k "
        f"devices, a step of {net.examples} computes for {seconds(alone.apart())}, backward for "
        f"{seconds(alone.backward)} of it; communication adds:"
    )
    names = list(dict.fromkeys(each.algorithm for each in steps))
    made = table(["k", "overlap", *names], title=title, caption=ALIKE)
    for k, on_k in groupby(steps, key=lambda each: each.devices):
        found = list(on_k)
        apart = {each.algorithm: each.apart - alone.apart() for each in found}
        overlapped = {each.algorithm: each.overlapped - alone.apart() for each in found}
        made.add_row(f"{k:,}", "no", *_marked(apart))
        made.add_row(f"{k:,}", "yes", *_marked(overlapped))
    return made


def _marked(times: dict[str, float]) -> list[Text]:
    """The times as cells; what wins is ticked."""
    best = winners(times)
    return [
        Text(f"{seconds(taken)} {'✓' if name in best else ' '}", "green" if name in best else "")
        for name, taken in times.items()
    ]
