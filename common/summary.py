"""A table, and a picture, of what the runs of a folder reached and how long they took.

python -m common.summary results/book --picture accuracy.svg
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.base.errors import RequestError
from common.base.files import require_file, write_text
from common.compare.checks import accuracy
from common.records.record import Record
from common.records.store import read_record, read_tensors
from common.report.plots import Line, Panel, plot
from common.terminal.command import Parser, status
from common.terminal.tables import markdown
from common.terminal.values import path

HEADINGS: Final = (
    *("framework", "devices", "accuracy", "after epoch 2", "s/epoch", "images/s", "peak memory"),
)

WINDOW: Final = 10
"""Steps whose losses are drawn as one point: their mean."""


def records(folder: Path) -> tuple[list[Record], list[str]]:
    """The complete records in `folder`, and the names of all others.

    Raises RequestError if none is complete, and RunError if one was changed.
    """
    found = [read_record(file) for file in folder.glob("*dev.json")]
    found.sort(key=lambda each: (FRAMEWORKS.index(each.framework), each.config.devices))
    complete = [each for each in found if each.status == "complete"]
    if not complete:
        raise RequestError(f"there are no complete records in {folder}")
    for each in complete:
        read_tensors(folder / each.file_name(), each)
    return complete, [each.name() for each in found if each.status != "complete"]


def table(found: Sequence[Record]) -> str:
    """The runs as a Markdown table, with where and when they were made."""
    first = found[0]
    machine = f"{first.machine['processor']}, {first.machine['cores']} cores"
    data = f"{first.config.train_examples:,} {first.config.dataset} images"
    source = f"{first.chapter}, preset {first.config.preset}, {data}; {machine}"
    lines = markdown(HEADINGS, map(row, found))
    return "\n".join([*lines, "", f"{source}; {first.started[:10]}."])


def row(record: Record) -> list[str]:
    """Accuracy and speed of a run: times and rates are means over its epochs."""
    epochs = record.epochs
    return [
        f"{record.framework} {record.config.options.way()}".rstrip(),
        str(record.config.devices),
        f"{accuracy(record):.3f}",
        f"{epochs[1].test_accuracy:.3f}" if len(epochs) > 1 else "",
        f"{fmean(epoch.seconds for epoch in epochs):.1f}",
        f"{fmean(epoch.images_per_second for epoch in epochs):,.0f}",
        f"{(record.peak_memory or 0) / 2**20:,.0f} MiB",
    ]


def draw(found: Sequence[Record], path: Path) -> None:
    """Draws loss and test accuracy of every run, one colour a framework, as an SVG."""
    losses, accuracies = [], []
    for record in found:
        run = record.framework, record.config.devices
        losses.append(Line(*run, *_smooth(record.losses)))
        reached = np.array([each.test_accuracy for each in record.epochs])
        accuracies.append(Line(*run, np.arange(1, len(reached) + 1), reached))
    panels = [
        Panel("step", f"training loss, means of {WINDOW} steps", losses),
        Panel("epoch", "test accuracy", accuracies),
    ]
    write_text(path, plot(panels))


def _smooth(losses: Sequence[float]) -> tuple[Array, Array]:
    """Steps and the mean loss of the `WINDOW` steps up to each; a short rest is left out."""
    means = np.array(losses[: len(losses) // WINDOW * WINDOW]).reshape(-1, WINDOW).mean(axis=1)
    return WINDOW * np.arange(1, len(means) + 1), means


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table and draws the picture. Raises RequestError, RunError or OSError."""
    made = Parser("python -m common.summary", __doc__)
    made.add_argument("folder", type=path, metavar="DIR", help="where the records are")
    made.add_argument("--picture", type=path, metavar="FILE", help="draw the runs to this SVG")
    flags = made.parse_args(argv)
    if flags.picture is not None:
        require_file(flags.picture, "--picture", ".svg")
    found, partial = records(flags.folder)
    print(table(found))
    if partial:
        print(f"\nNot complete, and left out: {', '.join(partial)}.")
    if flags.picture is not None:
        draw(found, flags.picture)


if __name__ == "__main__":
    raise SystemExit(status("python -m common.summary", main))
