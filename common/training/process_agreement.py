"""What all processes of a run have to agree on before it begins."""

from typing import Final

from common.backends.devices import Process
from common.base.errors import RequestError
from common.records.record import Record
from common.training.checkpoints import Checkpoint

ADVICE: Final = {
    "devices": "ask for the same --devices and --device-kind that all have",
    "data": "all hosts need the same data set, see --dataset and --data-dir",
    "initial weights": "all hosts need the same --init-weights",
    "checkpoint": "all hosts have to share --checkpoint-dir",
}
"""What to do about what the first process has and another one has not."""


def require_same(record: Record, found: Checkpoint | None, process: Process) -> None:
    """Raises RequestError unless all processes start from the same. All call it.

    Each has found its own: the devices, on which the setting may depend, the data and weights that
    it has read, and the checkpoint that it resumes from.
    """
    data = record.data
    settled = {
        "devices": f"{record.config.devices} devices, {record.config.device_kind}",
        "data": f"{data.name} {data.sha256[:12]}",
        "initial weights": record.initial_weights_sha256[:12],
        "checkpoint": found.record.sha256[:12] if found else "none",
    }
    first, *others = process.gather(settled)
    for rank, theirs in enumerate(others, start=1):
        for name in settled:
            if theirs[name] != first[name]:
                where = f" on {process.hosts[rank]}" if process.hosts else ""
                raise RequestError(
                    f"process {rank}{where} does not have the {name} of the first one "
                    f"({theirs[name]}, not {first[name]}): {ADVICE[name]}"
                )
