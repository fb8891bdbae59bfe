"""Processes that are threads here: how those of a run reach each other, without a framework."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import TypeVar

import numpy as np

from common.base.arrays import Array
from common.parallel.replicas import Communicator

T = TypeVar("T")


@dataclass(frozen=True)
class Member:
    """One of some processes; satisfies `common.parallel.replicas.Communicator`."""

    number: int
    said: list[Array]
    barrier: Barrier = field(default_factory=lambda: Barrier(1))

    def processes(self) -> int:
        return len(self.said)

    def rank(self) -> int:
        return self.number

    def gathered(self, values: Array) -> Array:
        """What all have; one that does not come is an error after 10 seconds."""
        self.said[self.number] = values
        self.barrier.wait(10)
        found = np.stack(self.said)
        assert all(each.dtype == found.dtype for each in self.said)
        assert found.dtype.kind == "f"  # MXNet's servers add nothing else
        self.barrier.wait(10)
        return found


ALONE = Member(0, [np.zeros(0)])
"""The only process of a run."""


def in_each(processes: int, work: Callable[[Communicator], T]) -> list[T]:
    """What `work` gives in each of some processes, by rank."""
    said, barrier = [np.zeros(0)] * processes, Barrier(processes)
    members = [Member(number, said, barrier) for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(work, members))
