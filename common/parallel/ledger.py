"""Counts what the devices of a split net send, receive and keep, as tensors move."""

import math
import time
from collections import UserDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Final

MOVED: Final = ("activations", "gradients", "weights")
"""Kinds of traffic. Gradients of activations count as gradients."""

KEPT: Final = ("weights", "gradients", "momentum", "activations")
"""Kinds of memory. Activations are inputs of layers, for the backward pass."""


@dataclass(frozen=True)
class Usage:
    """The traffic and the peak memory of one step on `examples`: bytes for each device.

    `sent` and `received` are by kind of `MOVED`, `peak` by kind of `KEPT`.
    `messages` counts those sent, `live` is the most microbatches in flight.
    """

    # Pydantic reads it: a record with more fields is no record.
    __pydantic_config__: ClassVar = {"extra": "forbid"}

    examples: int
    sent: dict[str, list[int]]
    received: dict[str, list[int]]
    messages: list[int]
    live: list[int]
    peak: dict[str, list[int]]

    def kept(self) -> list[int]:
        """The peak memory of each device, all kinds together."""
        return list(map(sum, zip(*self.peak.values(), strict=True)))

    def all_sent(self) -> list[int]:
        """The bytes that each device sends, all kinds together."""
        return list(map(sum, zip(*self.sent.values(), strict=True)))


@dataclass(frozen=True)
class Event:
    """A pass of a microbatch on a device, in seconds since the step began."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    device: int
    what: str
    microbatch: int
    begin: float
    end: float


class Ledger:
    """Counts for `devices`, known by their numbers; an element has `itemsize` bytes."""

    def __init__(self, devices: int, itemsize: int) -> None:
        self.devices, self.itemsize = devices, itemsize
        self.kept = self._zeros(KEPT)
        self.begin()

    def _zeros(self, kinds: Sequence[str]) -> dict[str, list[int]]:
        return {kind: [0] * self.devices for kind in kinds}

    def begin(self) -> None:
        """Begins a step: counts start at 0, but memory stays."""
        self.sent, self.received = self._zeros(MOVED), self._zeros(MOVED)
        self.messages, self.live = [0] * self.devices, [0] * self.devices
        self.peak = deepcopy(self.kept)
        self.events: list[Event] = []
        self.began = time.perf_counter()

    def bytes(self, value: Any) -> int:
        """The bytes of a tensor, or of several in a list."""
        if isinstance(value, list | tuple):
            return sum(map(self.bytes, value))
        return int(math.prod(value.shape)) * self.itemsize

    def keep(self, kind: str, device: int, size: int) -> None:
        """Counts bytes that a device keeps from now on; negative: that it frees."""
        kept, peak = self.kept[kind], self.peak[kind]
        kept[device] += size
        peak[device] = max(peak[device], kept[device])

    def usage(self, examples: int) -> Usage:
        counts = self.sent, self.received, self.messages, self.live, self.peak
        return Usage(examples, *deepcopy(counts))


class Kept(UserDict[Any, Any]):
    """Tensors of one kind that a device keeps, or lists of them; it counts their bytes."""

    def __init__(self, kind: str, device: int, ledger: Ledger) -> None:
        super().__init__()
        self.kind, self.device, self.ledger = kind, device, ledger

    def __setitem__(self, key: Any, value: Any) -> None:
        freed = self.ledger.bytes(self.data[key]) if key in self.data else 0
        self.ledger.keep(self.kind, self.device, self.ledger.bytes(value) - freed)
        super().__setitem__(key, value)
        if self.kind == "activations":
            live = self.ledger.live
            live[self.device] = max(live[self.device], len(self))

    def __delitem__(self, key: Any) -> None:
        self.ledger.keep(self.kind, self.device, -self.ledger.bytes(self.data[key]))
        super().__delitem__(key)


@dataclass(frozen=True)
class Group:
    """Devices of a collective; `numbers` are theirs among all devices."""

    devices: Sequence[Any]
    numbers: Sequence[int]
    ledger: Ledger

    def message(self, tensor: Any, source: int, target: int, kind: str) -> None:
        self.send(math.prod(tensor.shape), source, target, kind)

    def send(self, size: int, source: int, target: int, kind: str, messages: int = 1) -> None:
        """Counts messages of `size` elements together; devices by their places in the group."""
        if source != target:
            ledger, ends = self.ledger, (self.numbers[source], self.numbers[target])
            for counts, end in zip((ledger.sent, ledger.received), ends, strict=True):
                counts[kind][end] += size * ledger.itemsize
            ledger.messages[ends[0]] += messages

    def allreduce(self, size: int, kind: str, times: int = 1) -> None:
        """Counts all-reduces of `size` elements together: a star around the first device."""
        for device in range(1, len(self.numbers)):
            self.send(size, device, 0, kind, times)
            self.send(size, 0, device, kind, times)

    def all_to_all(self, sizes: Sequence[Sequence[int]], kind: str, times: int) -> None:
        """Counts `times` messages between any two, of `sizes[source][target]` together."""
        for source, here in enumerate(sizes):
            for target, size in enumerate(here):
                self.send(size, source, target, kind, times)

    def all_gather(self, sizes: Sequence[int], kind: str, times: int) -> None:
        """Counts what each device sends to all others."""
        self.all_to_all([[size] * len(sizes) for size in sizes], kind, times)

    def reduce_scatter(self, sizes: Sequence[int], kind: str, times: int) -> None:
        """Counts what each device gets from all others."""
        self.all_to_all([sizes] * len(sizes), kind, times)

    def kept(self, kind: str) -> list[Kept]:
        """For each device of the group, an empty place for tensors of one kind."""
        return [Kept(kind, number, self.ledger) for number in self.numbers]

    @contextmanager
    def event(self, what: str, microbatch: int, device: int | None = None) -> Iterator[None]:
        """Notes when a device of the group, or all of them, did something.

        GPUs, and CPUs in JAX and MXNet, have a queue: it is the time of queuing, and more
        microbatches may be in flight than are counted.
        """
        begin = time.perf_counter() - self.ledger.began
        yield
        end = time.perf_counter() - self.ledger.began
        for number in self.numbers if device is None else [self.numbers[device]]:
            self.ledger.events.append(Event(number, what, microbatch, begin, end))


def mesh(devices: Sequence[Any], replicas: int, ledger: Ledger) -> tuple[list[Group], list[Group]]:
    """The rows and the columns of a mesh: model-parallel and data-parallel groups."""

    def group(numbers: Sequence[int]) -> Group:
        return Group([devices[i] for i in numbers], numbers, ledger)

    length, numbers = len(devices) // replicas, range(len(devices))
    rows = [group(numbers[row * length :][:length]) for row in range(replicas)]
    return rows, [group(numbers[column::length]) for column in range(length)]
