"""What a compiled program moves between devices: read from its text."""

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

KIND = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
# What an asynchronous one results in, the line says in which it is done.
COLLECTIVE = re.compile(rf" = (\([^()]*\)|\S+) ({KIND})(?:-done)?\(")
TENSOR = re.compile(r"\b(pred|[a-z]+(\d+))\[([\d,]*)\]")
ALONE = re.compile(r"replica_groups=\{(\{\d+\},?)+\}")  # each device with itself
COMPUTATION = re.compile(r"(ENTRY )?%(\S+) \(.*\{$")
CALLED = re.compile(r"\w=\{?(%[^\s,}]+(?:, %[^\s,}]+)*)")
TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


class Collective(NamedTuple):
    """A collective operation, and what each device has of it afterwards."""

    kind: str
    times: int
    numbers: int
    bytes: int


def moved(text: str) -> list[Collective]:
    """All collectives of a program, and how often it comes to each of them."""
    computations: dict[str, list[str]] = {}
    entry, lines = "", list[str]()
    for line in text.splitlines():
        if header := COMPUTATION.match(line):
            lines = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        lines.append(line)

    def within(name: str, times: int) -> Iterator[Collective]:
        for line in computations[name][1:]:
            found = COLLECTIVE.search(line)
            if found and not ALONE.search(line):
                yield Collective(found[2], times, *_size(found[1]))
            trips = TRIPS.search(line)
            for called in CALLED.findall(line):
                for each in called.replace("%", "").split(", "):
                    if each in computations:
                        yield from within(each, times * int(trips[1] if trips else 1))

    return list(within(entry, 1))


def _size(shapes: str) -> tuple[int, int]:
    """How many numbers tensors have, and how many bytes."""
    sizes = [
        (prod(map(int, filter(None, shape.split(",")))), int(bits or 8) // 8)
        for _, bits, shape in TENSOR.findall(shapes)
    ]
    return sum(count for count, _ in sizes), sum(count * size for count, size in sizes)
