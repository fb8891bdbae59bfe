"""The ledger of a run: what each device sends, receives and keeps, counted as it does so."""

import math
import time
from collections import Counter, UserDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

MOVED: Final = ("activations", "gradients", "weights")
"""What messages are made of. Gradients of activations count as gradients."""

KEPT: Final = ("weights", "gradients", "momentum", "activations")
"""What takes a device's memory. Activations are what waits for the way back of a layer."""


@dataclass(frozen=True)
class Usage:
    """What one step on so many `examples` sent and kept: a number for each device, in bytes.

    `sent` and `received` are by kind of `MOVED`, `peak` is the most of each kind of `KEPT`. Each
    device sends so many `messages`, and has so many microbatches `live`: passed forward, not back.
    """

    # Pydantic reads it: a record with more fields is no record.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    examples: int
    sent: dict[str, list[int]]
    received: dict[str, list[int]]
    messages: list[int]
    live: list[int]
    peak: dict[str, list[int]]


@dataclass(frozen=True)
class Collective:
    """What a framework moved of itself in a step by one kind of collective, in bytes.

    It is the size of all tensors together that were summed, broadcast, or whole before they were
    scattered or after they were gathered. Messages ("send") are those of all devices.
    """

    kind: str
    size: int

    def by_star(self, devices: int) -> int:
        """What all devices would send if one of them had to do it, as plans count."""
        each = {"send": 1, "all-reduce": 2 * (devices - 1)}
        return each.get(self.kind, devices - 1) * self.size


@dataclass(frozen=True)
class Event:
    """What a device did with a microbatch, forward or backward, in seconds since the step began."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    device: int
    what: str
    microbatch: int
    begin: float
    end: float


@dataclass
class Ledger:
    """What `devices` send, receive and keep; they are known by their numbers.

    A number has `itemsize` bytes.
    """

    devices: int
    itemsize: int
    sent: Counter[tuple[str, int]] = field(default_factory=Counter)
    received: Counter[tuple[str, int]] = field(default_factory=Counter)
    messages: Counter[int] = field(default_factory=Counter)
    kept: Counter[tuple[str, int]] = field(default_factory=Counter)
    peak: Counter[tuple[str, int]] = field(default_factory=Counter)
    live: Counter[int] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    began: float = 0.0

    def begin(self) -> None:
        """Begins a step: what devices keep, they keep."""
        for counter in (self.sent, self.received, self.messages, self.live):
            counter.clear()
        self.peak = Counter(self.kept)
        self.events, self.began = [], time.perf_counter()

    def bytes(self, value: Any) -> int:
        """The bytes of a tensor, or of several in a list."""
        if isinstance(value, list | tuple):
            return sum(map(self.bytes, value))
        size: int = math.prod(value.shape) * self.itemsize
        return size

    def send(self, size: int, source: int, target: int, kind: str, messages: int = 1) -> None:
        """Counts messages of `size` bytes together."""
        self.sent[kind, source] += size
        self.received[kind, target] += size
        self.messages[source] += messages

    def keep(self, kind: str, device: int, size: int) -> None:
        """Counts bytes that a device has from now on; negative ones, if it lets them go."""
        self.kept[kind, device] += size
        self.peak[kind, device] = max(self.peak[kind, device], self.kept[kind, device])

    def usage(self, examples: int) -> Usage:
        """What a step on so many examples has come to."""
        numbers = range(self.devices)
        return Usage(
            examples=examples,
            sent={kind: [self.sent[kind, i] for i in numbers] for kind in MOVED},
            received={kind: [self.received[kind, i] for i in numbers] for kind in MOVED},
            messages=[self.messages[i] for i in numbers],
            live=[self.live[i] for i in numbers],
            peak={kind: [self.peak[kind, i] for i in numbers] for kind in KEPT},
        )


class Kept(UserDict[Any, Any]):
    """Tensors of one kind that a device keeps, by name or by microbatch.

    Their bytes count as long as they are here.
    """

    def __init__(self, kind: str, device: int, ledger: Ledger) -> None:
        """Begins with none."""
        super().__init__()
        self.kind, self.device, self.ledger = kind, device, ledger

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keeps a tensor, or several in a list; another one of that name goes."""
        gone = self.ledger.bytes(self.data[key]) if key in self.data else 0
        self.ledger.keep(self.kind, self.device, self.ledger.bytes(value) - gone)
        super().__setitem__(key, value)
        if self.kind == "activations":
            self.ledger.live[self.device] = max(self.ledger.live[self.device], len(self))

    def __delitem__(self, key: Any) -> None:
        """Lets it go."""
        self.ledger.keep(self.kind, self.device, -self.ledger.bytes(self.data[key]))
        super().__delitem__(key)


@dataclass(frozen=True)
class Group:
    """Devices that split something among themselves; `numbers` are theirs among all devices."""

    devices: Sequence[Any]
    numbers: Sequence[int]
    ledger: Ledger

    def message(self, tensor: Any, source: int, target: int, kind: str) -> None:
        """Counts a message between two devices of the group, by their places in it."""
        ends = self.numbers[source], self.numbers[target]
        self.ledger.send(self.ledger.bytes(tensor), *ends, kind)

    def kept(self, kind: str) -> list[Kept]:
        """A place in which each device of the group keeps tensors of one kind."""
        return [Kept(kind, number, self.ledger) for number in self.numbers]

    @contextmanager
    def event(self, what: str, microbatch: int, device: int | None = None) -> Iterator[None]:
        """Notes when a device of the group, or all of them, did something.

        Of devices that queue what they are told, as GPUs do, and CPUs in JAX and MXNet, it is the
        time in which they were told. So more microbatches may be live there than are counted.
        """
        begin = time.perf_counter() - self.ledger.began
        yield
        end = time.perf_counter() - self.ledger.began
        for number in self.numbers if device is None else [self.numbers[device]]:
            self.ledger.events.append(Event(number, what, microbatch, begin, end))


def mesh(devices: Sequence[Any], replicas: int, ledger: Ledger) -> tuple[list[Group], list[Group]]:
    """The rows and the columns of a mesh of devices.

    Each row has a replica of the whole model; the devices of a column have the same part of it.
    """
    length = len(devices) // replicas
    numbers = range(len(devices))
    rows = [numbers[row * length : (row + 1) * length] for row in range(replicas)]
    columns = [numbers[column::length] for column in range(length)]
    made = [
        [Group([devices[i] for i in few], few, ledger) for few in each] for each in (rows, columns)
    ]
    return made[0], made[1]
