"""An allreduce as frames: the sums on each device after each round, and the messages.

The schedules are those that the frameworks train with, run by the same `execute`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from common.parallel.schedules import Round, Schedule, execute
from common.terminal.text import listed

Held = tuple[tuple[int, ...], ...]
"""By device and chunk: the devices whose values are in the sum, bit d for device d."""


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
    share = Fraction(len(transfers[0].chunks), schedule.chunks)
    what = "the vector" if share == 1 else f"{share} of the vector"
    does = "is added to" if transfers[0].adds else "replaces"
    who, whom = _senders_and_receivers(schedule.devices, transfers)
    return f"Round {number} of {last}: {who} {what} to {whom}. It {does} what is there."


def _senders_and_receivers(k: int, transfers: Round) -> tuple[str, str]:
    """Who sends among k devices, and to whom, by the pattern of the messages."""
    pairs = sorted((t.source, t.target) for t in transfers)
    sources, targets = (sorted({pair[end] for pair in pairs}) for end in (0, 1))
    who = "every device sends"
    if len(sources) < k:
        who = f"devices {listed(sources)} send" if sources[1:] else f"device {sources[0]} sends"
    if len(pairs) == k * (k - 1):
        return who, "every other"
    if pairs == sorted((device, (device + 1) % k) for device in range(k)):
        return who, "the next, the last to the first"
    if sources[1:] and targets[1:]:
        return who, f"devices {listed([target for _, target in pairs])}, in this order"
    return who, f"device{'s' if targets[1:] else ''} {listed(targets)}"
