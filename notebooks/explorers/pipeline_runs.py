"""Writes docs/pipeline-runs.json: the passes of real runs, which an explorer draws with the plan.

    python -m notebooks.explorers.pipeline_runs runs/*/*-strategies-pipeline-4dev.json

They are the first steps of runs in all frameworks and orders:

    python -m frameworks.jax.strategies --strategy pipeline --devices 4 --microbatches 8 --depth 8 \
        --schedule 1f1b --batch-size 256 --threads 1 --steps 1 --out runs/1f1b
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.base.files import write_text
from common.parallel.pipelines import IN_FLIGHT
from common.records.record import Record
from common.records.store import read_record
from common.terminal.command import Parser, status
from notebooks.explorers.runs import RUNS


def pipeline_run(record: Record) -> dict[str, Any]:
    """The passes of a run and their times in milliseconds. Raises RunError if it has none."""
    options: Any = record.config.options
    if record.chapter != "strategies" or options.strategy != "pipeline" or not record.split:
        raise RunError(f"{record.file_name()} has no passes of a pipeline")
    names = record.framework, "torch"
    versions = (v for name, v in record.versions.items() if name.startswith(names) and v != "none")
    net = f"LeNet with {options.depth} layers more" if options.depth else "LeNet"
    passes = [(e.device, int(e.what == "forward"), e.microbatch) for e in record.split.events]
    times = [(round(1e3 * e.begin, 3), round(1e3 * e.end, 3)) for e in record.split.events]
    return {
        "framework": record.framework,
        "about": f" {next(versions)}, the first step of a run of {net} on a minibatch of "
        f"{record.config.batch_size}, {record.started[:10]}; its devices are simulated on "
        f"{record.machine['cores']} cores",
        "schedule": options.schedule,
        "stages": record.config.devices,
        "microbatches": options.microbatches,
        "events": [[*entry, *span] for entry, span in zip(passes, times, strict=True)],
    }


def write(paths: Sequence[Path]) -> None:
    """Writes the file, a run a line, sorted by framework and order of the passes."""
    runs = [pipeline_run(read_record(path)) for path in paths]
    orders = list(IN_FLIGHT)
    runs.sort(key=lambda run: (FRAMEWORKS.index(run["framework"]), orders.index(run["schedule"])))
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    write_text(RUNS, f"[\n{lines}\n]\n")


if __name__ == "__main__":
    parser = Parser("python -m notebooks.explorers.pipeline_runs", __doc__)
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE", help="records of runs")
    raise SystemExit(status(parser.prog, lambda: write(parser.parse_args().records)))
