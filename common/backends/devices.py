"""The devices that a run asks for and gets, and the process that it is in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from common.base.errors import RequestError

Device = TypeVar("Device")


@dataclass(frozen=True)
class Process:
    """One of the `count` processes of a run; on its host, one of `local_count`."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    def own(self, devices: Sequence[Device]) -> list[Device]:
        """The process's share of all devices of the host: the same number for each process.

        Raises RequestError if they cannot be shared so.
        """
        share, over = divmod(len(devices), self.local_count)
        if over or not share:
            raise RequestError(
                f"{len(devices)} devices cannot be shared by {self.local_count} processes: "
                "ask for the same number for each process"
            )
        return list(devices[self.local_rank * share : (self.local_rank + 1) * share])


@dataclass(frozen=True)
class DeviceRequest:
    """The devices that are asked for: how many, "auto", "cpu" or "gpu", and the CPU's threads.

    Without a `count`: every GPU there is, else 2 CPU devices.
    """

    count: int | None
    kind: str
    threads: int

    def settled(self, gpus: int, framework: str) -> tuple[str, int]:
        """The kind, "cpu" or "gpu", and the number of devices, where there are so many GPUs.

        CPU devices are virtual, so there are always enough. Raises RequestError if there are fewer
        GPUs than asked for: never fewer, never silently others.
        """
        if self.kind == "cpu" or (self.kind == "auto" and not gpus):
            return "cpu", self.count or 2
        if not gpus or (self.count or gpus) > gpus:
            raise RequestError(
                f"{framework} sees {gpus} GPUs here, not {self.count or 'any'}: "
                "ask for fewer --devices or for --device-kind cpu"
            )
        return "gpu", self.count or gpus


@dataclass(frozen=True)
class Devices(Generic[Device]):
    """The devices of a run: their kind, the names of all, and this process's own."""

    kind: str
    names: list[str]
    own: list[Device]

    @classmethod
    def of(cls, kind: str, devices: Sequence[Device], process: Process) -> "Devices[Device]":
        """All `devices` of one host, of which a process has its share."""
        return cls(kind, [str(device) for device in devices], process.own(devices))
