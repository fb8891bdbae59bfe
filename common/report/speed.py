"""How fast runs were, and how accurate: of the records, and of a benchmark beside them."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Final

from pydantic import BaseModel, Field

from common.base.errors import RunError
from common.base.files import require_regular
from common.compare.accuracy import accuracy
from common.records.record import Record
from common.records.store import read_json
from common.report.provenance import Table

MIB: Final = 2**20

HEADINGS: Final = (
    *("framework", "devices", "accuracy", "after epoch 2", "s/epoch", "images/s", "peak memory"),
    "resumed",
)

FIGURES: Final = {
    "images_per_second": ("images/s", 1, ",.0f"),
    "step": ("ms/step", 1e3, ",.1f"),
    "epoch": ("s/epoch", 1, ",.1f"),
    "first_step": ("s to the first step", 1, ".1f"),
    "peak_memory": ("peak memory, MiB", 1 / MIB, ",.0f"),
    "data_share": ("data's share of the time", 1, ".3f"),
    "operations_per_second": ("matrix product, GFLOP/s", 1e-9, ",.0f"),
    "import": ("s to import", 1, ".1f"),
    "help": ("s for --help", 1, ".2f"),
}
"""What a benchmark measures: how it is headed, by what it is multiplied, how it is written."""


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


def benchmark(folder: Path) -> tuple[str, list[Table]]:
    """What `bench.json` in `folder` says: a line, and a table for each net; empty without it."""
    path = folder / "bench.json"
    try:
        require_regular(path)
        found = read_json(Benchmark, path, "what `nox -s bench` writes")
    except FileNotFoundError:
        return "", []
    except (OSError, RunError) as error:
        return f"bench.json cannot be read: {error}", []
    machine = ", ".join(f"{name} {value}" for name, value in found.machine.items())
    chapters = dict.fromkeys(each.chapter for each in found.samples)
    rounds = f"{found.rounds} rounds {found.company()}".rstrip()
    line = f"Medians of {rounds}; {machine}; {found.created}."
    return line, [_of_chapter(found, chapter) for chapter in chapters]


def _of_chapter(found: Benchmark, chapter: str) -> Table:
    """The medians of every loop of a chapter, or of the machine."""
    samples = [each for each in found.samples if each.chapter == chapter]
    names = list(dict.fromkeys(name for each in samples for name in each.figures))
    headings = [FIGURES.get(name, (name,))[0] for name in names]
    rows = [
        [
            each.framework,
            each.contender,
            each.on(),
            *(_figure(name, each.figures.get(name)) for name in names),
        ]
        for each in samples
    ]
    return Table(chapter or "machine", ["framework", "loop", "devices", *headings], rows)


def _figure(name: str, values: Sequence[float] | None) -> str:
    if values is None:
        return ""
    _, unit, form = FIGURES.get(name, (name, 1, ".4g"))
    return format(median(values) * unit, form)
