"""What runs that split their net send and keep in a step: predicted, and counted by each."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from common.backends.frameworks import FRAMEWORKS
from common.chapters.strategies import STRATEGIES
from common.parallel.ledger import KEPT, MOVED, Usage
from common.records.record import Record
from common.report.speed import Table

Parts = dict[str, int]
"""Bytes of each kind."""


def of_splits(records: Sequence[Record]) -> list[Table]:
    """Two tables, in bytes: what all devices send, and what the device that keeps most keeps.

    None without runs that split their net. What a framework has not run is left empty.
    """
    runs: dict[tuple[int, str, int], dict[str, Record]] = {}
    for each in records:
        if each.split is not None:
            way = each.config.options.way()
            place = list(STRATEGIES).index(way.partition("x")[0])
            runs.setdefault((place, way, each.config.devices), {})[each.framework] = each
    if not runs:
        return []
    tables = []
    for title, kinds, parts in (
        ("Bytes that all devices send in a step", MOVED, sent),
        ("Bytes at the peak of a step, on the device that keeps most", KEPT, kept),
    ):
        rows = [
            [way, str(devices), *cells(found, parts)]
            for (_, way, devices), found in sorted(runs.items())
        ]
        headings = ["strategy", "devices", *kinds, "predicted", *FRAMEWORKS]
        tables.append(Table(title, headings, rows))
    return tables


def sent(usage: Usage) -> Parts:
    """By all devices together."""
    return {kind: sum(sizes) for kind, sizes in usage.sent.items()}


def kept(usage: Usage) -> Parts:
    """By the device that keeps most: the peaks of all kinds, which need not be at one time."""
    devices = zip(*usage.peak.values(), strict=True)
    return dict(zip(KEPT, max(devices, key=sum), strict=True))


def cells(found: Mapping[str, Record], parts: Callable[[Usage], Parts]) -> Iterator[str]:
    """What is predicted, by kind and together, and what each framework has counted, together."""
    splits = {name: each.split for name, each in found.items() if each.split is not None}
    predicted = parts(next(iter(splits.values())).predicted)
    yield from (f"{size:,}" for size in (*predicted.values(), sum(predicted.values())))
    for name in FRAMEWORKS:
        counted = sum(parts(splits[name].counted).values()) if name in splits else None
        yield "" if counted is None else f"{counted:,}"
