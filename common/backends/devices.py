"""The devices that a run asks for and gets, and the process that it is in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Self, TypeVar

from common.base.errors import RequestError

Device = TypeVar("Device")

LOOPBACK: Final = "127.0.0.1"
"""The address at which a machine reaches only itself."""


def list_of_one(value: Any) -> list[Any]:
    return [value]


@dataclass(frozen=True)
class Process:
    """One of the `count` processes of a run; on its host, one of `local_count`.

    `hosts` and `addresses` tell on which host each one is, by rank, and how the others reach it;
    they are empty if all are on this machine. `gather` gives a value, which has to be JSON of some
    hundred bytes, and returns what each process has given, by rank: all call it, in one order.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1
    hosts: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    gather: Callable[[Any], list[Any]] = field(default=list_of_one, compare=False, repr=False)

    def names(self, kind: str, share: int) -> list[str]:
        """The names of all devices over several hosts: each process has `share`, by its rank."""
        return [
            f"{host} {kind}:{self.hosts[:rank].count(host) * share + index}"
            for rank, host in enumerate(self.hosts)
            for index in range(share)
        ]

    def address(self, rank: int) -> str:
        """The IPv4 address at which this process reaches another one, or others reach it."""
        return self.addresses[rank] if self.addresses else LOOPBACK

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
    """The devices that are asked for: how many, "auto", "cpu" or "gpu", and the CPU's threads.

    Without a `count`: every GPU there is, else 2 CPU devices. With `tf32`, GPUs may multiply
    float32 numbers with ten bits of the mantissa; `deterministic` ones give the same bits each
    time.
    """

    count: int | None
    kind: str
    threads: int
    tf32: bool = False
    deterministic: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        flags = ("devices", "device_kind", "threads", "tf32", "deterministic")
        return cls(*(settings[name] for name in flags))

    def on_each(self, process: Process) -> "DeviceRequest":
        """What is asked for on each host of a run. Raises RequestError if that is uneven."""
        share, over = divmod(self.count or 0, process.count)
        if over:
            what = f"{self.count} devices cannot be shared by {process.count} processes"
            how = "--devices counts those of all hosts, and each process has the same number"
            raise RequestError(f"{what}: {how}")
        return replace(self, count=share * process.local_count or None)

    def settled(self, gpus: int, framework: str) -> tuple[str, int]:
        """The kind, "cpu" or "gpu", and the number. Raises RequestError if GPUs are lacking."""
        if self.kind == "cpu" or (self.kind == "auto" and not gpus):
            return "cpu", self.count or 2
        if not gpus:
            why = "docs/gpu.md tells why that may be, and --device-kind cpu does without"
            raise RequestError(f"{framework} sees no GPU here: {why}")
        if (self.count or gpus) > gpus:
            what = f"{framework} sees {gpus} GPU{'s' * (gpus > 1)} here, not {self.count}"
            raise RequestError(f"{what}: ask for fewer --devices or for --device-kind cpu")
        return "gpu", self.count or gpus


@dataclass(frozen=True)
class Devices(Generic[Device]):
    """The devices of a run: their kind, the names of all, and those of this process."""

    kind: str
    names: list[str]
    local: list[Device]

    @classmethod
    def of(cls, kind: str, devices: Sequence[Device], process: Process) -> "Devices[Device]":
        """All `devices` of this host, of which a process has its share."""
        local = process.share_of(devices)
        names = process.names(kind, len(local)) or [str(device) for device in devices]
        return cls(kind, names, local)
