"""How fast runs were, and how accurate."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from common.compare.accuracy import accuracy
from common.records.record import Record

MIB: Final = 2**20

HEADINGS: Final = (
    *("framework", "devices", "accuracy", "after epoch 2", "s/epoch", "images/s", "peak memory"),
    "resumed",
)


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    caption: str
    headings: list[str]
    rows: list[list[str]]


def of_records(records: Sequence[Record]) -> Table:
    """Accuracy and speed of each run, without columns that say nothing of any.

    Times and rates are means over a run's epochs.
    """
    rows = [_row(each) for each in records]
    told = [i for i in range(len(HEADINGS)) if any(row[i] not in ("", "0") for row in rows)]
    headings, *rows = ([row[i] for i in told] for row in (HEADINGS, *rows))
    return Table("Test accuracy in the end, speed and peak memory", headings, rows)


def _row(record: Record) -> list[str]:
    epochs = record.epochs
    return [
        who(record),
        str(record.config.devices),
        f"{accuracy(record):.3f}",
        f"{epochs[1].test_accuracy:.3f}" if len(epochs) > 1 else "",
        f"{fmean(epoch.seconds for epoch in epochs):.1f}",
        f"{fmean(epoch.images_per_second for epoch in epochs):,.0f}",
        f"{(record.peak_memory or 0) / MIB:,.0f} MiB",
        # At its end, a run that resumes only finishes again.
        str(sum(each.step < len(record.losses) for each in record.resumed)),
    ]


def who(record: Record) -> str:
    """The framework, and its way to split if there are several."""
    return f"{record.framework} {record.config.options.way()}".rstrip()
