"""Predicts the time of an allreduce from the times of its parts, one after the other."""

from collections.abc import Sequence

import numpy as np

from common.base.arrays import Array
from common.parallel.schedules import Schedule
from common.parallel.shards import shard_sizes
from common.scaling.results import Costs, Line, Lines, Probe, piece


def predict(costs: Costs, schedule: Schedule, entries: int) -> float:
    """The seconds of all messages and additions, one after the other, and of cutting and joining.

    Virtual devices share one processor. Each chunk counts as one message, whatever is sent
    together; to cut into more than 4 chunks counts as to cut into 4.
    """
    sizes = shard_sizes(entries, schedule.chunks)
    transfers = [transfer for one in schedule.rounds for transfer in one]
    moved = sum(costs.message(sizes[chunk]) for each in transfers for chunk in each.chunks)
    added = sum(
        costs.addition(sizes[chunk]) for each in transfers if each.adds for chunk in each.chunks
    )
    cut = costs.cut[min(schedule.chunks, len(costs.cut)) - 1]
    return moved + added + schedule.devices * cut(entries)


def fit(probes: Sequence[Probe]) -> Costs:
    """The constants, each from the difference in time between two kinds of calls, for all sizes."""
    sizes = np.array(sorted({each.entries for each in probes}), float)
    cuts = [_seconds(probes, chunks, to_and_fro=False, adds=False) for chunks in range(1, 5)]
    moved = _seconds(probes, 1, to_and_fro=True, adds=False)
    added = _seconds(probes, 1, to_and_fro=True, adds=True)
    counts = sorted((each.entries, each.messages) for each in probes if each.adds)
    messages = np.array([number for _, number in counts])
    one, two, three, four = (lines(sizes, taken / 2, taken / 2) for taken in cuts)
    return Costs(
        message=lines(sizes, (moved - cuts[0]) / messages, moved / messages),
        addition=lines(sizes, (added - moved) / messages, added / messages),
        cut=(one, two, three, four),
    )


def _seconds(probes: Sequence[Probe], chunks: int, *, to_and_fro: bool, adds: bool) -> Array:
    """The seconds of one kind of call (sizes,), the smallest size first."""
    kind = (chunks, to_and_fro, adds)
    alike = [each for each in probes if (each.chunks, each.messages > 0, each.adds) == kind]
    return np.array([each.seconds for each in sorted(alike, key=lambda each: each.entries)])


def lines(entries: Array, seconds: Array, clock: Array) -> Lines:
    """A line for each length, through all points if fewer than two have this length.

    The line of long vectors starts where that of medium ones does: long times show no latency.
    """
    lengths, every = np.array([piece(each) for each in entries]), np.ones(len(entries), bool)
    alike = [same if same.sum() > 1 else every for same in (lengths == each for each in range(3))]
    points = [(entries[same], seconds[same], clock[same]) for same in alike]
    short, medium = line(*points[0]), line(*points[1])
    long = Line(fixed=medium.fixed, per_entry=slope(*points[2], medium.fixed))
    return Lines(short=short, medium=medium, long=long)


def line(entries: Array, seconds: Array, clock: Array) -> Line:
    """The least-squares line through `seconds` (n,), without a negative constant.

    Each point is weighted by its relative precision: the error is a share of its `clock` (n,).
    """
    weighted = np.stack([np.ones(len(entries)), entries], axis=1) / clock[:, None]
    fixed, per_entry = np.linalg.lstsq(weighted, seconds / clock, rcond=None)[0]
    if per_entry < 0:
        fixed, per_entry = np.average(seconds, weights=1 / clock**2), 0
    if fixed < 0:
        fixed, per_entry = 0, slope(entries, seconds, clock, 0)
    return Line(fixed=max(0.0, float(fixed)), per_entry=float(per_entry))


def slope(entries: Array, seconds: Array, clock: Array, fixed: float) -> float:
    """The slope of such a line that starts at `fixed`."""
    weighted, wanted = entries / clock, (seconds - fixed) / clock
    return max(0.0, float(weighted @ wanted / (weighted @ weighted)))
