"""An allreduce as frames: what each device has after each round, and what was sent for it.

The schedules are those that the frameworks train with, walked by their own `execute`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from common.parallel.schedules import Round, Schedule, Transfer, execute

Held = tuple[tuple[int, ...], ...]
"""By device and chunk: whose values are in the sum there, bit d for device d."""

MOST_LISTED: Final = 4
"""Of more pairs of devices than this, the words say only how far they are apart."""


@dataclass(frozen=True)
class Frame:
    """One moment: the messages of the round that has just ended, and what every device has now."""

    transfers: Round
    lanes: tuple[int, ...]
    held: Held
    busiest: int
    """Chunks that the device which sends most has sent until now."""


def frames(schedule: Schedule) -> list[Frame]:
    """The start, and the moment after each round."""
    held = [[1 << device] * schedule.chunks for device in range(schedule.devices)]
    found = [Frame((), (), _frozen(held), 0)]
    for number, one in enumerate(schedule.rounds, start=1):
        execute(replace(schedule, rounds=(one,)), held, lambda chunk, _: chunk)
        done = replace(schedule, rounds=schedule.rounds[:number])
        busiest = max(sent for sent, _ in done.traffic(schedule.chunks))
        found.append(Frame(one, lanes(one), _frozen(held), busiest))
    return found


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
    for line in sorted(spans, key=lambda each: min(spans[each])):
        row = ends.setdefault(line[0], [])
        lane = next((i for i, end in enumerate(row) if end < min(spans[line])), len(row))
        row[lane : lane + 1] = [max(spans[line])]
        chosen[line] = lane
    return tuple(chosen[line] for line in lines)


def gaps(schedule: Schedule, shown: Sequence[Frame]) -> list[int]:
    """For each chunk, how many lanes are needed below it so that it stays in its place."""
    needed = [0] * schedule.chunks
    for frame in shown:
        for t, lane in zip(frame.transfers, frame.lanes, strict=True):
            needed[t.chunks.stop - 1] = max(needed[t.chunks.stop - 1], lane + 1)
    return needed


def devices_in(mask: int) -> list[int]:
    """The devices whose values are in a sum."""
    return [device for device in range(mask.bit_length()) if mask >> device & 1]


def words(schedule: Schedule, number: int) -> str:
    """What happens in a round, counted from 1, in words; at 0, what there is at the start."""
    if number == 0:
        cut = "in one piece" if schedule.chunks == 1 else f"cut into {schedule.chunks} chunks"
        return f"Start: each of {schedule.devices} devices has a vector of its own, {cut}."
    transfers, last = schedule.rounds[number - 1], len(schedule.rounds)
    what, one = _what(schedule, transfers[0]), len(transfers[0].chunks) == 1
    pronoun = "it" if one or what == "the vector" else "them"
    does = f"adds {pronoun} to" if transfers[0].adds else f"puts {pronoun} in place of"
    messages = "1 message:" if len(transfers) == 1 else f"{len(transfers)} messages, each"
    return (
        f"Round {number} of {last}: {_who(schedule.devices, transfers, what)}. "
        f"The receiver {does} its own. {messages} {_share(schedule, transfers[0])}."
    )


def _what(schedule: Schedule, transfer: Transfer) -> str:
    if len(transfer.chunks) == schedule.chunks:
        return "the vector"
    return "a chunk" if len(transfer.chunks) == 1 else f"{len(transfer.chunks)} chunks"


def _share(schedule: Schedule, transfer: Transfer) -> str:
    """How large a message is, as a share of the vector."""
    share = Fraction(len(transfer.chunks), schedule.chunks)
    return "the whole vector" if share == 1 else f"{share} of the vector"


def _who(k: int, transfers: Round, what: str) -> str:
    """Which of k devices send to which, by the pattern of the messages."""
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
    return _who_in_pairs(pairs, what)


def _who_in_pairs(pairs: Sequence[tuple[int, int]], what: str) -> str:
    """The pairs one by one; of many, only how far they are apart."""
    distance = abs(pairs[0][0] - pairs[0][1])
    if {(b, a) for a, b in pairs} == set(pairs):
        once = [f"{a} and {b}" for a, b in pairs if a < b]
        if len(once) > MOST_LISTED:
            return f"{len(once)} pairs of devices, {distance} apart, send each other {what}"
        return f"devices {', '.join(once)} send each other {what}"
    if len(pairs) > MOST_LISTED:
        sense = "before" if pairs[0][1] < pairs[0][0] else "after"
        return f"{len(pairs)} devices send {what} to the device {distance} {sense} theirs"
    (source, target), *others = pairs
    listed = "".join(f", {a} to {b}" for a, b in others)
    return f"device {source} sends {what} to device {target}{listed}"
