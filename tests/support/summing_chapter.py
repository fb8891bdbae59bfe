"""A chapter whose steps sum over the devices of all processes, which a test may hurt."""

import os
import signal
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from fake_chapter import FakeChapter

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.arrays import Array
from common.parallel.shards import shard_bounds

Hurt = Callable[[int], object]
"""Is called in a process before each step, with the step's number."""


def nothing(step: int) -> None:
    """Does nothing."""


class SummingChapter(FakeChapter):
    """Each step subtracts the sum over the shards of all devices of all processes."""

    def __init__(self, hurt: Hurt = nothing) -> None:
        super().__init__()
        self.hurt, self.process = hurt, ALONE

    def launch(
        self,
        worker: Callable[[Process], None],
        request: DeviceRequest,
        options: Any,
        process: Process = ALONE,
    ) -> None:
        self.process = process
        worker(process)

    def train_batch(self, X: Array, y: Array, lr: float) -> float:
        super().train_batch(X, y, 0)
        self.hurt(len(self.batches))
        share, rank = self.shards, self.process.rank
        bounds = shard_bounds(len(X), share * self.process.count)[rank * share :][:share]
        ours = [float(np.sum(X[a:b] * (y[a:b, None, None, None] + 1))) for a, b in bounds]
        total = sum(chain.from_iterable(self.process.gather(ours)))
        for replica in self.replicas:
            for values in replica.values():
                values -= lr * total / 1e4
        return float(total + self.replicas[0]["fc2.bias"][0])


def from_step(step: int, number: signal.Signals, process: Callable[[], int]) -> Hurt:
    """Sends a signal before a step to this process (`os.getpid`) or its parent (`os.getppid`)."""

    def hurt(at: int) -> None:
        if at == step:
            os.kill(process(), number)
        time.sleep(0.02)

    return hurt


def held(name: str) -> Hurt:
    """Lets a trainer stand still before its third step, until it is ended."""

    def hurt(at: int) -> None:
        if at == 3:
            Path(name).touch()
            time.sleep(1000)

    return hurt
