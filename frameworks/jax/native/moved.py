"""What a compiled program moves between devices: read from its text."""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod

from common.base.errors import RunError
from common.parallel.ledger import Collective

KIND = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
COLLECTIVE = re.compile(rf" = (\([^()]*\)|\S+) ({KIND})(-start)?\(")
TENSOR = re.compile(r"\b(pred|[a-z]+(\d+))\[([\d,]*)\]")
ALONE = re.compile(r"replica_groups=\{(\{\d+\},?)+\}")  # each device with itself
PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
COMPUTATION = re.compile(r"(ENTRY )?%(\S+) \(.*\{$")
CALLED = re.compile(r"\w=\{?(%[^\s,}]+(?:, %[^\s,}]+)*)")
TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


def moved(text: str) -> list[Collective]:
    """What devices move in a program, by kind."""
    sizes = Counter[str]()
    for kind, size in collectives(text):
        sizes[kind] += size
    return [Collective(kind, size) for kind, size in sorted(sizes.items())]


def collectives(text: str) -> Iterator[tuple[str, int]]:
    """Every collective that a program comes to, and the bytes that a device then has of it."""
    computations: dict[str, list[str]] = {}
    entry, lines = "", list[str]()
    for line in text.splitlines():
        if header := COMPUTATION.match(line):
            lines = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        lines.append(line)

    def within(name: str, times: int) -> Iterator[tuple[str, int]]:
        for line in computations[name][1:]:
            found = COLLECTIVE.search(line)
            if found and found[3]:
                raise RunError(f"a program with {found[2]}-start is not counted: no CPU has one")
            if found and not ALONE.search(line):
                # Each pair of a device and its neighbour is a message of its own.
                pairs = PAIRS.search(line)
                messages = pairs[1].count(",{") + 1 if pairs else 1
                yield "send" if pairs else found[2], times * messages * _size(found[1])
            trips = TRIPS.search(line)
            for called in CALLED.findall(line):
                for each in called.replace("%", "").split(", "):
                    if each in computations:
                        yield from within(each, times * int(trips[1] if trips else 1))

    return within(entry, 1)


def _size(shapes: str) -> int:
    """How many bytes tensors have."""
    return sum(
        prod(map(int, filter(None, shape.split(",")))) * (int(bits or 8) // 8)
        for _, bits, shape in TENSOR.findall(shapes)
    )
