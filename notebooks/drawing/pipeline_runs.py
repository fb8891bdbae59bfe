"""Writes docs/pipeline-runs.json: what real runs did, which an explorer draws beside their plan.

    python -m notebooks.drawing.pipeline_runs runs/*/*-strategies-pipeline-4dev.json

The runs are of all frameworks and orders, the first step of each:

    python -m frameworks.jax.strategies --strategy pipeline --devices 4 --microbatches 8 --depth 8 \
        --schedule 1f1b --batch-size 256 --threads 1 --steps 1 --out runs/1f1b
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.base.files import write_text
from common.parallel.pipelines import ORDERS
from common.records.record import Record
from common.records.store import read_record
from common.terminal.command import status

RUNS: Final = Path(__file__).parents[2] / "docs" / "pipeline-runs.json"


def kept(record: Record) -> dict[str, Any]:
    """What is drawn of a run, with times in milliseconds.

    Raises RunError if it is not of a pipeline that has counted what it did.
    """
    options: Any = record.config.options
    if record.chapter != "strategies" or options.strategy != "pipeline" or not record.split:
        raise RunError(f"{record.file_name()} does not tell the passes of a pipeline")
    version = next(
        each
        for name, each in record.versions.items()
        if name.startswith((record.framework, "torch")) and each != "none"
    )
    machine = record.machine
    return {
        "framework": record.framework,
        "about": f" {version}, the first step of a run of {options.net()} on a minibatch of "
        f"{record.config.batch_size}, {record.started[:10]}; its devices are simulated on "
        f"{machine['cores']} cores",
        "schedule": options.schedule,
        "stages": record.config.devices,
        "microbatches": options.microbatches,
        "events": [
            [each.device, int(each.what == "forward"), each.microbatch, *times]
            for each in record.split.events
            for times in [[round(1000 * each.begin, 3), round(1000 * each.end, 3)]]
        ],
    }


def write(paths: Sequence[Path]) -> None:
    """Writes the file, a run a line, in the order of frameworks and of orders of a pipeline."""
    if not paths:
        raise RequestError("name the records of runs")
    runs = [kept(read_record(path)) for path in paths]
    orders = list(ORDERS)
    runs.sort(key=lambda run: (FRAMEWORKS.index(run["framework"]), orders.index(run["schedule"])))
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    write_text(RUNS, f"[\n{lines}\n]\n")


if __name__ == "__main__":
    records = [Path(each) for each in sys.argv[1:]]
    raise SystemExit(status("python -m notebooks.drawing.pipeline_runs", lambda: write(records)))
