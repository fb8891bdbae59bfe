"""An allreduce walked once more, in numbers: device d has 2**d in every chunk, and messages add.

A sum then says who is in it, and a device that is counted twice makes it another number.
"""

from collections.abc import Iterator

import numpy as np

from common.base.arrays import Array
from common.parallel.schedules import Schedule


def sums(schedule: Schedule) -> Iterator[Array]:
    """What each device has of each chunk (devices, chunks), at the start and after each round."""
    held = np.repeat(2 ** np.arange(schedule.devices)[:, None], schedule.chunks, axis=1)
    yield held
    for one in schedule.rounds:
        before, held = held, held.copy()
        for t in one:
            part = slice(t.chunks.start, t.chunks.stop)
            held[t.target, part] = held[t.target, part] * t.adds + before[t.source, part]
        yield held
