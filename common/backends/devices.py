"""The devices that a run asks for and gets, and the process that it is in."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from socket import gethostname
from typing import Any, Final, Generic, TypeVar

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError

Device = TypeVar("Device")


def alone(values: Array) -> Array:
    """The values of the only process."""
    return values[None]


@dataclass(frozen=True)
class Process:
    """One of the `count` processes of a run; on its host, one of `local_count`.

    `engine` is what joins processes that a launcher has started. `gathered` returns all processes'
    `values` of one shape and dtype, (processes, ...), by rank: all call it, in one order.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1
    engine: str = ""
    gathered: Callable[[Array], Array] = field(default=alone, compare=False, repr=False)

    def gather(self, value: Any) -> list[Any]:
        """What each process has given, by rank: JSON."""
        text = json.dumps(value).encode()
        longest = self.gathered(np.array([len(text)], np.float64)).max()
        padded = np.frombuffer(text.ljust(int(longest)), np.uint8)
        rows = self.gathered(padded.astype(np.float64)).astype(np.uint8)
        return [json.loads(row.tobytes()) for row in rows]

    def any(self, holds: bool) -> bool:
        """Whether it holds in one of the processes."""
        return bool(self.gathered(np.array([holds], np.float64)).any())

    def share_of(self, devices: Sequence[Device]) -> list[Device]:
        """The process's share of its host's devices. Raises RequestError if they are uneven."""
        share, over = divmod(len(devices), self.local_count)
        if over or not share:
            what = f"{len(devices)} devices cannot be shared by {self.local_count} processes"
            raise RequestError(f"{what}: ask for the same number for each process")
        return list(devices[self.local_rank * share : (self.local_rank + 1) * share])


ALONE: Final = Process()


@dataclass(frozen=True)
class DeviceRequest:
    """The devices of a run: how many, "cpu" or "gpu", and the threads that all CPU devices share.

    With `tf32`, GPUs may multiply float32 numbers with ten bits of the mantissa; `deterministic`
    ones give the same bits each time.
    """

    count: int
    kind: str
    threads: int
    tf32: bool = False
    deterministic: bool = False

    def on_each(self, process: Process) -> "DeviceRequest":
        """What is asked for on a process's host. Raises RequestError if shares are uneven."""
        share, over = divmod(self.count, process.count)
        if over:
            what = f"{self.count} devices cannot be shared by {process.count} processes"
            how = "--devices counts those of all, and each process has the same number"
            raise RequestError(f"{what}: {how}")
        return replace(self, count=share * process.local_count)

    def require(self, gpus: int, framework: str) -> None:
        """Raises RequestError if it is for more GPUs than a framework sees."""
        if self.kind == "cpu" or self.count <= gpus:
            return
        if not gpus:
            why = "docs/gpu.md tells why that may be, and --device-kind cpu does without"
            raise RequestError(f"{framework} sees no GPU here: {why}")
        what = f"{framework} sees {gpus} GPU{'s' * (gpus > 1)} here, not {self.count}"
        raise RequestError(f"{what}: ask for fewer --devices or for --device-kind cpu")


@dataclass(frozen=True)
class Devices(Generic[Device]):
    """The devices of this process, and their kind."""

    kind: str
    local: list[Device]

    def names(self, process: Process) -> list[str]:
        """The names of the devices of all processes; over hosts, with the host of each."""
        if not process.engine:
            return list(chain(*process.gather(list(map(str, self.local)))))
        counts = process.gather([gethostname(), len(self.local)])
        hosts = [host for host, count in counts for _ in range(count)]
        return [f"{host} {self.kind}:{hosts[:i].count(host)}" for i, host in enumerate(hosts)]


def in_this_process(
    worker: Callable[[Process], None], request: DeviceRequest, options: object
) -> None:
    """Calls `worker` here, for all devices."""
    worker(ALONE)
