"""How long an allreduce takes, from what its parts take: all at once, or one after the other."""

from collections.abc import Sequence

import numpy as np

from common.base.arrays import Array
from common.parallel.schedules import SCHEDULES, Schedule
from common.parallel.shards import shard_sizes
from common.scaling.formulas import FORMULAS
from common.scaling.results import Costs, Line, Lines, Probe, piece


def predict(costs: Costs, schedule: Schedule, entries: int) -> float:
    """The seconds of all messages and additions, one after the other, and of cutting and joining.

    So it is where all devices share one processor. Each chunk is a message of its own here,
    whatever travels together.
    """
    sizes = shard_sizes(entries, schedule.chunks)
    transfers = [transfer for one in schedule.rounds for transfer in one]
    moved = sum(costs.message(sizes[chunk]) for each in transfers for chunk in each.chunks)
    added = sum(
        costs.addition(sizes[chunk]) for each in transfers if each.adds for chunk in each.chunks
    )
    return moved + added + schedule.devices * cut(costs, schedule)(entries)


def predict_at_once(costs: Costs, algorithm: str, k: int, entries: int) -> float:
    """The seconds of what the busiest of k > 1 devices does: all work at the same time.

    Its messages count as if all were of one length; what comes by half of them is added.
    """
    path = FORMULAS[algorithm](k, entries)
    additions = path.messages / 2
    moved = path.messages * costs.message(path.moved / path.messages)
    added = additions * costs.addition(path.added / additions)
    return moved + added + cut(costs, SCHEDULES[algorithm](k))(entries)


def cut(costs: Costs, schedule: Schedule) -> Lines:
    """What it takes a device to cut and join; more than 4 chunks count as 4."""
    return costs.cut[min(schedule.chunks, len(costs.cut)) - 1]


def fit(probes: Sequence[Probe], devices: int = 2) -> Costs:
    """The constants: each from what one kind of call takes more than another, for all sizes.

    As many `devices` have cut and joined in turn: all that are in one process.
    """
    sizes = np.array(sorted({each.entries for each in probes}), float)
    cuts = [_seconds(probes, chunks, to_and_fro=False, adds=False) for chunks in range(1, 5)]
    moved = _seconds(probes, 1, to_and_fro=True, adds=False)
    added = _seconds(probes, 1, to_and_fro=True, adds=True)
    counts = sorted((each.entries, each.messages) for each in probes if each.adds)
    messages = np.array([number for _, number in counts])
    one, two, three, four = (lines(sizes, taken / devices, taken / devices) for taken in cuts)
    return Costs(
        message=lines(sizes, (moved - cuts[0]) / messages, moved / messages),
        addition=lines(sizes, (added - moved) / messages, added / messages),
        cut=(one, two, three, four),
    )


def _seconds(probes: Sequence[Probe], chunks: int, *, to_and_fro: bool, adds: bool) -> Array:
    """What one kind of call takes (sizes,), the smallest size first."""
    kind = (chunks, to_and_fro, adds)
    alike = [each for each in probes if (each.chunks, each.messages > 0, each.adds) == kind]
    return np.array([each.seconds for each in sorted(alike, key=lambda each: each.entries)])


def lines(entries: Array, seconds: Array, clock: Array) -> Lines:
    """A line for each length; where fewer than two such vectors were timed, through all of them.

    That of long ones starts where that of medium ones does: long times do not show a latency.
    """
    lengths, every = np.array([piece(each) for each in entries]), np.ones(len(entries), bool)
    alike = [same if same.sum() > 1 else every for same in (lengths == each for each in range(3))]
    points = [(entries[same], seconds[same], clock[same]) for same in alike]
    short, medium = line(*points[0]), line(*points[1])
    long = Line(fixed=medium.fixed, per_entry=slope(*points[2], medium.fixed))
    return Lines(short=short, medium=medium, long=long)


def line(entries: Array, seconds: Array, clock: Array) -> Line:
    """The line of least squares through `seconds` (n,), none of whose two constants is negative.

    Each point counts as exactly as it is known: to a share of what the clock showed for it.
    """
    weighted = np.stack([np.ones(len(entries)), entries], axis=1) / clock[:, None]
    fixed, per_entry = np.linalg.lstsq(weighted, seconds / clock, rcond=None)[0]
    if per_entry < 0:
        fixed, per_entry = np.average(seconds, weights=1 / clock**2), 0
    if fixed < 0:
        fixed, per_entry = 0, slope(entries, seconds, clock, 0)
    return Line(fixed=max(0.0, float(fixed)), per_entry=float(per_entry))


def slope(entries: Array, seconds: Array, clock: Array, fixed: float) -> float:
    """The same, once it is known where the line starts: how steep it is."""
    weighted, wanted = entries / clock, (seconds - fixed) / clock
    return max(0.0, float(weighted @ wanted / (weighted @ weighted)))
