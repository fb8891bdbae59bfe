"""Writes docs/pipeline-runs.json: what real runs did, which an explorer draws beside their plan.

    python -m notebooks.drawing.pipeline_runs runs/*/*-strategies-pipeline-4dev.json

The runs are of all frameworks and orders, the first step of each:

    python -m frameworks.jax.strategies --strategy pipeline --devices 4 --microbatches 8 --depth 8 \
        --schedule 1f1b --batch-size 256 --threads 1 --steps 1 --out runs/1f1b
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.parallel.pipelines import ORDERS
from common.records.record import Record
from common.records.store import read_record

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
        f"{record.config.batch_size}, {record.started[:10]}; its devices are virtual ones on "
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


def write(records: list[Path]) -> None:
    """Writes the file, a run a line, in the order of frameworks and of orders of a pipeline."""
    runs = [kept(read_record(path)) for path in records]
    orders = list(ORDERS)
    runs.sort(key=lambda run: (FRAMEWORKS.index(run["framework"]), orders.index(run["schedule"])))
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    RUNS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write([Path(name) for name in sys.argv[1:]])
