"""An allreduce in numbers: device d starts with 2**d in every chunk, and messages add.

A sum shows its terms, and differs if a device is counted twice.
"""

from collections.abc import Iterator

import numpy as np

from common.base.arrays import Array
from common.parallel.schedules import Schedule


def sums(schedule: Schedule) -> Iterator[Array]:
    """The sums (devices, chunks) at the start and after each round."""
    held = np.repeat(2 ** np.arange(schedule.devices)[:, None], schedule.chunks, axis=1)
    yield held
    for transfers in schedule.rounds:
        before, held = held, held.copy()
        for t in transfers:
            part = slice(t.chunks.start, t.chunks.stop)
            held[t.target, part] = held[t.target, part] * t.adds + before[t.source, part]
        yield held
