"""A table, and a picture, of what the runs of a folder reached and how long they took.

python -m common.summary results/book --picture accuracy.svg
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.files import require_file, write_text
from common.compare.runs import final_accuracy
from common.records.record import Record, name_of, read_record, read_tensors
from common.report.plots import Line, Panel, plot
from common.terminal.command import Parser, path, status
from common.terminal.tables import markdown

WINDOW: Final = 10
"""Steps whose losses are drawn as one point: their mean."""


def records(folder: Path) -> tuple[list[Record], list[str]]:
    """The complete records in `folder`, and the names of others. Raises RequestError, RunError."""
    runs = [read_record(file) for file in folder.glob("*dev.json")]
    runs.sort(key=lambda run: (FRAMEWORKS.index(run.framework), run.config.devices))
    complete = [run for run in runs if run.status == "complete"]
    if not complete:
        raise RequestError(f"there are no complete records in {folder}")
    for run in complete:
        read_tensors(folder / name_of(run.config), run)
    return complete, [run.name() for run in runs if run.status != "complete"]


def table(runs: Sequence[Record]) -> str:
    """The runs as a Markdown table, with where and when they were made."""
    headings = ["framework", "devices", "accuracy", "after epoch 2", "s/epoch", "images/s"]
    lines = markdown([*headings, "peak memory"], map(row, runs))
    first = runs[0]
    machine = f"{first.machine['processor']}, {first.machine['cores']} cores"
    data = f"{first.config.train_examples:,} {first.config.dataset} images"
    source = f"{first.chapter}, preset {first.config.preset}, {data}; {machine}"
    return "\n".join([*lines, "", f"{source}; {first.started[:10]}."])


def row(run: Record) -> list[str]:
    """Accuracy and speed of a run: times and rates are means over its setup's epochs.

    An accuracy that rests on steps of another setup, which are named, is that of neither.
    """
    epochs, timed, others = run.epochs, run.timed_epochs(), run.another_setup()
    who = f"{run.framework} {run.config.options.way()}".rstrip()
    return [
        f"{who}, {others}" if others else who,
        str(run.config.devices),
        "" if others else f"{final_accuracy(run):.3f}",
        f"{epochs[1].test_accuracy:.3f}" if len(epochs) > 1 and not others else "",
        f"{fmean(epoch.seconds for epoch in timed):.1f}" if timed else "",
        f"{fmean(epoch.images_per_second for epoch in timed):,.0f}" if timed else "",
        f"{(run.peak_memory or 0) / 2**20:,.0f} MiB",
    ]


def picture(runs: Sequence[Record]) -> str:
    """Loss and test accuracy of every run of one setup, one colour a framework, as an SVG."""
    losses, accuracies = [], []
    for run in runs:
        if run.another_setup():
            continue
        name, count = (run.framework, run.config.devices), len(run.losses) // WINDOW
        means = np.array(run.losses[: count * WINDOW]).reshape(count, WINDOW).mean(axis=1)
        losses.append(Line(*name, WINDOW * np.arange(1, count + 1), means))
        reached = np.array([epoch.test_accuracy for epoch in run.epochs])
        accuracies.append(Line(*name, np.arange(1, len(reached) + 1), reached))
    panel = Panel("step", f"training loss, means of {WINDOW} steps", losses)
    return plot([panel, Panel("epoch", "test accuracy", accuracies)])


def main(argv: Sequence[str] | None = None) -> None:
    parser = Parser("python -m common.summary", __doc__)
    parser.add_argument("folder", type=path, metavar="DIR", help="where the records are")
    parser.add_argument("--picture", type=path, metavar="FILE", help="draw the runs to this SVG")
    flags = parser.parse_args(argv)
    if flags.picture is not None:
        require_file(flags.picture, "--picture", ".svg")
    runs, partial = records(flags.folder)
    print(table(runs))
    if partial:
        print(f"\nNot complete, and left out: {', '.join(partial)}.")
    if flags.picture is not None:
        write_text(flags.picture, picture(runs))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.summary", main))
