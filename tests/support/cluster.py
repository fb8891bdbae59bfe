"""A cluster that walks a schedule message by message: the judge of the formulas."""

from common.parallel.schedules import Round, Schedule
from common.parallel.shards import shard_sizes


def walked(
    schedule: Schedule, entries: int, latency: float, per_entry: float, per_entry_added: float
) -> float:
    """The seconds of all rounds; each lasts until its slowest device has moved and added."""
    sizes = shard_sizes(entries, schedule.chunks)
    return sum(_round(one, sizes, latency, per_entry, per_entry_added) for one in schedule.rounds)


def _round(
    one: Round, sizes: list[int], latency: float, per_entry: float, per_entry_added: float
) -> float:
    sent: dict[int, float] = {}
    received: dict[int, float] = {}
    added: dict[int, float] = {}
    for transfer in one:
        size = sum(sizes[chunk] for chunk in transfer.chunks)
        a, b, taken = transfer.source, transfer.target, latency + per_entry * size
        sent[a] = sent.get(a, 0) + taken
        received[b] = received.get(b, 0) + taken
        added[b] = added.get(b, 0) + per_entry_added * size * transfer.adds
    return max(
        max(sent.get(device, 0), received.get(device, 0)) + added.get(device, 0)
        for device in {*sent, *received}
    )
