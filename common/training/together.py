"""What a run over several hosts tells of its processes, and what they have to agree on."""

import time
from dataclasses import dataclass, replace
from typing import Any

from common.backends.devices import Process
from common.backends.loading import engine
from common.base.errors import RequestError
from common.base.machine import peak_memory
from common.records.record import Cluster, Member
from common.settings.config import Config
from common.training.checkpoints import Checkpoint


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
    told += [[None, None]] * (process.count - len(told))
    share = config.devices // process.count
    members = [
        Member(host=host, devices=share, peak_memory=memory, waited=waited)
        for host, (memory, waited) in zip(process.hosts, told, strict=True)
    ]
    about = engine(config.framework, config.chapter, config.device_kind)
    return Cluster(launcher=launcher, processes=members, **about)


def require_same(found: Checkpoint | None, process: Process) -> None:
    """Raises RequestError unless all processes go on from the same checkpoint. All call it."""
    everyones = process.gather(found.record.sha256 if found else "")
    for rank, theirs in enumerate(everyones):
        if theirs != everyones[0]:
            raise RequestError(
                f"process {rank}{_on(process, rank)} does not find the checkpoint that the first "
                "one goes on from: all hosts have to share --checkpoint-dir"
            )


def _on(process: Process, rank: int) -> str:
    return f" on {process.hosts[rank]}" if process.hosts else ""
