"""Tables of runs: how accurate and fast they were, what their splits sent and kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.chapters.strategies import STRATEGIES
from common.compare.accuracy import accuracy
from common.parallel.ledger import KEPT, MOVED, Usage
from common.records.record import Record

MIB: Final = 2**20

Rows = list[list[str]]
"""Of a table; the first one has the headings."""


def of_records(records: Sequence[Record]) -> Rows:
    """Accuracy and speed of each run, without columns that say nothing of any.

    Times and rates are means over a run's epochs.
    """
    rows = [_row(record) for record in records]
    headings = [name for name in rows[0] if any(row[name] for row in rows)]
    return [headings, *([row[name] for name in headings] for row in rows)]


def _row(record: Record) -> dict[str, str]:
    epochs = record.epochs
    return {
        "framework": who(record),
        "devices": str(record.config.devices),
        "accuracy": f"{accuracy(record):.3f}",
        "after epoch 2": f"{epochs[1].test_accuracy:.3f}" if len(epochs) > 1 else "",
        "s/epoch": f"{fmean(epoch.seconds for epoch in epochs):.1f}",
        "images/s": f"{fmean(epoch.images_per_second for epoch in epochs):,.0f}",
        "peak memory": f"{(record.peak_memory or 0) / MIB:,.0f} MiB",
    }


def who(record: Record) -> str:
    """The framework, and its strategy if it has one."""
    return f"{record.framework} {record.config.options.way()}".rstrip()


def of_splits(records: Sequence[Record]) -> dict[str, Rows]:
    """Two tables, in bytes: what all devices send, and what the device that keeps most keeps.

    Empty without runs that split their net. What a framework has not run is left empty.
    """
    runs: dict[tuple[int, str, int], dict[str, Record]] = {}
    for each in records:
        if each.split is not None:
            way = each.config.options.way()
            place = list(STRATEGIES).index(way.partition("x")[0])
            runs.setdefault((place, way, each.config.devices), {})[each.framework] = each
    columns = {
        "Bytes that all devices send in a step": (MOVED, sent),
        "Bytes at the peak of a step, on the device that keeps most": (KEPT, kept),
    }
    return {
        title: [
            ["strategy", "devices", *kinds, "predicted", *FRAMEWORKS],
            *([way, str(k), *cells(found, parts)] for (_, way, k), found in sorted(runs.items())),
        ]
        for title, (kinds, parts) in columns.items()
        if runs
    }


def sent(usage: Usage) -> dict[str, int]:
    """The bytes of each kind that all devices send."""
    return {kind: sum(sizes) for kind, sizes in usage.sent.items()}


def kept(usage: Usage) -> dict[str, int]:
    """The peak bytes of each kind on the device that keeps most; they need not be at one time."""
    devices = zip(*usage.peak.values(), strict=True)
    return dict(zip(KEPT, max(devices, key=sum), strict=True))


def cells(
    found: Mapping[str, Record], parts: Callable[[Usage], Mapping[str, int]]
) -> Iterator[str]:
    """What is predicted, by kind and together, and what each framework has counted, together."""
    splits = {name: each.split for name, each in found.items() if each.split is not None}
    predicted = parts(next(iter(splits.values())).predicted)
    yield from (f"{size:,}" for size in (*predicted.values(), sum(predicted.values())))
    for name in FRAMEWORKS:
        yield f"{sum(parts(splits[name].counted).values()):,}" if name in splits else ""
