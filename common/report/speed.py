"""How fast runs were, and how accurate: of the records, and of a benchmark beside them."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Final

from pydantic import ValidationError

from common.base.files import require_small
from common.compare.checks import Run
from common.report.benchmark import Benchmark
from common.report.provenance import Table

MIB: Final = 2**20

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


def of_runs(runs: Sequence[Run]) -> Table:
    """Accuracy and speed of each run; times and rates are means over its epochs.

    The speedup is over the same framework's run on one device.
    """
    headings = ["framework", "on", "accuracy", "s/epoch", "images/s", "speedup", "MiB"]
    single = {run.record.framework: _rate(run) for run in runs if run.devices == 1}
    rows = []
    for run in runs:
        record, rate = run.record, _rate(run)
        one = single.get(record.framework, 0.0)
        rows.append(
            [
                record.framework,
                str(run.devices),
                f"{record.epochs[-1].test_accuracy:.3f}",
                f"{fmean(epoch.seconds for epoch in record.epochs):.3g}",
                f"{rate:.4g}",
                f"{rate / one:.2f}" if one else "",
                f"{(record.peak_memory or 0) / MIB:.0f}",
            ]
        )
    return Table("Test accuracy after the last epoch, speed and peak memory", headings, rows)


def _rate(run: Run) -> float:
    return fmean(epoch.images_per_second for epoch in run.record.epochs)


def benchmark(folder: Path) -> tuple[str, list[Table]]:
    """What `bench.json` in `folder` says: a line, and a table for each net; empty without it."""
    path = folder / "bench.json"
    try:
        require_small(path)
        found = Benchmark.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "", []
    except (OSError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"msg": error}
        return f"bench.json cannot be read: {first['msg']}", []
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
