"""How fast runs were, and how accurate."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Annotated, Final

from pydantic import BaseModel, Field

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


class Samples(BaseModel):
    """What was measured of one loop, a value for each round. Times in seconds, sizes in bytes.

    The devices are of one `kind`, "cpu" or "gpu".
    """

    framework: str
    chapter: str
    contender: str
    devices: int
    kind: str = "cpu"
    figures: dict[str, Annotated[list[float], Field(min_length=1)]]

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return median(self.figures[name])

    def on(self) -> str:
        """The devices, in words."""
        if self.kind == "cpu":
            return str(self.devices)
        return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"


class Benchmark(BaseModel):
    """One run of the benchmark: where it was measured, and every sample of every loop.

    `failed` names the loops that could not be measured. So many other processes were kept busy
    `beside` them.
    """

    created: str
    machine: dict[str, str | int]
    rounds: int
    beside: int = 0
    failed: list[str] = []
    samples: list[Samples]

    def company(self) -> str:
        """What was going on beside it, in words; empty if nothing was."""
        if not self.beside:
            return ""
        return f"beside {self.beside} busy process{'es' if self.beside > 1 else ''}"


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
