"""An allreduce as frames: the sums on each device after each round, and the messages.

The schedules are those that the frameworks train with, run by the same `execute`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from common.parallel.schedules import Round, Schedule, Transfer, execute

Held = tuple[tuple[int, ...], ...]
"""By device and chunk: the devices whose values are in the sum, bit d for device d."""

MOST_LISTED: Final = 4
"""The most pairs of devices that the words list one by one."""


@dataclass(frozen=True)
class Frame:
    """The messages of a round, and the sums on every device after it."""

    transfers: Round
    lanes: tuple[int, ...]
    held: Held
    busiest: int
    """Chunks sent so far by the device that sends most."""


def frames(schedule: Schedule) -> list[Frame]:
    """The start, and the moment after each round."""
    held = [[1 << device] * schedule.chunks for device in range(schedule.devices)]
    moments = [Frame((), (), _frozen(held), 0)]
    for number, transfers in enumerate(schedule.rounds, start=1):
        execute(replace(schedule, rounds=(transfers,)), held, lambda chunk, _: chunk)
        done = replace(schedule, rounds=schedule.rounds[:number])
        busiest = max(sent for sent, _ in done.traffic(schedule.chunks))
        moments.append(Frame(transfers, lanes(transfers), _frozen(held), busiest))
    return moments


def _frozen(held: Sequence[Sequence[int]]) -> Held:
    return tuple(map(tuple, held))


def lanes(transfers: Round) -> tuple[int, ...]:
    """For each message, the lane below its last chunk in which its arrow runs, 0 at the top.

    Arrows share a line only where they meet: all come from one device, or all go to one.
    """
    lines = [(t.chunks.stop, t.target if t.adds else t.source, t.chunks.start) for t in transfers]
    spans: dict[tuple[int, int, int], list[int]] = {}
    for line, t in zip(lines, transfers, strict=True):
        spans.setdefault(line, []).extend((t.source, t.target))
    chosen: dict[tuple[int, int, int], int] = {}
    ends: dict[int, list[int]] = {}
    for line in sorted(spans, key=lambda line: min(spans[line])):
        row = ends.setdefault(line[0], [])
        lane = next((i for i, end in enumerate(row) if end < min(spans[line])), len(row))
        row[lane : lane + 1] = [max(spans[line])]
        chosen[line] = lane
    return tuple(chosen[line] for line in lines)


def gaps(schedule: Schedule, shown: Sequence[Frame]) -> list[int]:
    """For each chunk, the number of lanes below it, so that it stays in its place."""
    needed = [0] * schedule.chunks
    for frame in shown:
        for t, lane in zip(frame.transfers, frame.lanes, strict=True):
            needed[t.chunks.stop - 1] = max(needed[t.chunks.stop - 1], lane + 1)
    return needed


def devices_in(mask: int) -> list[int]:
    """The devices whose values are in a sum."""
    return [device for device in range(mask.bit_length()) if mask >> device & 1]


def words(schedule: Schedule, number: int) -> str:
    """A round in words, counted from 1; the start at 0."""
    if number == 0:
        cut = "whole" if schedule.chunks == 1 else f"cut into {schedule.chunks} chunks"
        return f"Start: each of {schedule.devices} devices has a vector, {cut}."
    transfers, last = schedule.rounds[number - 1], len(schedule.rounds)
    what = _content(schedule, transfers[0])
    pronoun = "it" if len(transfers[0].chunks) == 1 or what == "the vector" else "them"
    does = f"adds {pronoun} to" if transfers[0].adds else f"puts {pronoun} in place of"
    messages = "1 message:" if len(transfers) == 1 else f"{len(transfers)} messages, each"
    return (
        f"Round {number} of {last}: {_senders(schedule.devices, transfers, what)}. "
        f"The receiver {does} its own. {messages} {_share(schedule, transfers[0])}."
    )


def _content(schedule: Schedule, transfer: Transfer) -> str:
    if len(transfer.chunks) == schedule.chunks:
        return "the vector"
    return "a chunk" if len(transfer.chunks) == 1 else f"{len(transfer.chunks)} chunks"


def _share(schedule: Schedule, transfer: Transfer) -> str:
    """The size of a message, as a share of the vector."""
    share = Fraction(len(transfer.chunks), schedule.chunks)
    return "the whole vector" if share == 1 else f"{share} of the vector"


def _senders(k: int, transfers: Round, what: str) -> str:
    """Senders and receivers among k devices, by the pattern of the messages."""
    pairs = sorted((t.source, t.target) for t in transfers)
    sources, targets = ({pair[end] for pair in pairs} for end in (0, 1))
    if len(pairs) == k * (k - 1):
        return f"each device sends {what} to {'the other' if k == 2 else 'every other'}"
    if pairs == sorted((device, (device + 1) % k) for device in range(k)):
        return f"each device sends {what} to the next, the last to the first"
    if len(pairs) == k - 1 > 1 and len(targets) == 1:
        return f"every other device sends {what} to device {min(targets)}"
    if len(pairs) == k - 1 > 1 and len(sources) == 1:
        return f"device {min(sources)} sends {what} to every other"
    return _pairs(pairs, what)


def _pairs(pairs: Sequence[tuple[int, int]], what: str) -> str:
    """The pairs one by one; of many, only their distance."""
    distance = abs(pairs[0][0] - pairs[0][1])
    if {(b, a) for a, b in pairs} == set(pairs):
        names = [f"{a} and {b}" for a, b in pairs if a < b]
        if len(names) > MOST_LISTED:
            return f"{len(names)} pairs of devices, {distance} apart, send each other {what}"
        return f"devices {', '.join(names)} send each other {what}"
    if len(pairs) > MOST_LISTED:
        sense = "before" if pairs[0][1] < pairs[0][0] else "after"
        return f"{len(pairs)} devices send {what} to the device {distance} {sense} theirs"
    (source, target), *others = pairs
    listed = "".join(f", {a} to {b}" for a, b in others)
    return f"device {source} sends {what} to device {target}{listed}"
