"""What a run over several hosts tells of its processes, and what they have to agree on."""

import time
from dataclasses import dataclass, replace
from typing import Any, Final

from common.backends.devices import Process
from common.backends.loading import engine
from common.base.errors import RequestError
from common.base.machine import peak_memory
from common.records.record import Cluster, ProcessOnHost, Record
from common.settings.config import Config
from common.training.checkpoints import Checkpoint

ADVICE: Final = {
    "devices": "ask for the same --devices and --device-kind that all have",
    "data": "all hosts need the same data set, see --dataset and --data-dir",
    "initial weights": "all hosts need the same --init-weights",
    "checkpoint": "all hosts have to share --checkpoint-dir",
}
"""What to do about what the first process has and another one has not."""


@dataclass
class Waiting:
    """A process, and the seconds in which it has waited for what others gave."""

    process: Process
    seconds: float = 0.0

    def counted(self) -> Process:
        """The same process; how long it waits is counted."""
        return replace(self.process, gather=self._gather)

    def _gather(self, value: Any) -> list[Any]:
        began = time.perf_counter()
        try:
            return self.process.gather(value)
        finally:
            self.seconds += time.perf_counter() - began


def cluster(launcher: str, config: Config, waiting: Waiting) -> Cluster | None:
    """The processes of a run over hosts, in the end; None if there is one host. All call it."""
    process = waiting.process
    if not process.hosts:
        return None
    told = process.gather([peak_memory(), round(waiting.seconds, 3)])
    if len(told) < process.count:  # the others serve the first one, and give nothing
        told = [[told[0][0], None], *[[None, None]] * (process.count - 1)]
    share = config.devices // process.count
    members = [
        ProcessOnHost(host=host, devices=share, peak_memory=memory, waited=waited)
        for host, (memory, waited) in zip(process.hosts, told, strict=True)
    ]
    settings = config.settings()
    how = settings.get("allreduce") or settings.get("wrapper", "")
    about = engine(config.framework, config.chapter, config.device_kind, how)
    return Cluster(launcher=launcher, processes=members, **about)


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
