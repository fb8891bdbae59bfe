"""Computes the steps of several runs again, side by side where that is faster."""

import os
from collections.abc import Sequence
from multiprocessing.pool import ThreadPool
from typing import Final

from common.base.machine import cores
from common.chapters.operations import training_operations
from common.compare.checks import Run
from common.compare.replay import Replay, replay
from common.terminal.progress import tracked

MOST: Final = 4
"""Runs at a time."""

LARGE: Final = 10**10
"""Operations of a step from which on runs are computed one by one, for the memory.

Of 99 % of it, one pass took 0.75 GiB for LeNet and 0.37 to 0.72 for ResNet-18, measured.
"""


def replays(runs: Sequence[Run], description: str) -> dict[str, Replay | None]:
    """What each run should have computed, by its name; the description stands beside a bar."""
    # Unlike an executor's, these threads hold up nobody who is interrupted.
    with ThreadPool(at_once(runs)) as pool:
        made = zip(tracked(runs, description), pool.imap(replay, runs), strict=True)
        return {run.name: each for run, each in made}


def at_once(runs: Sequence[Run]) -> int:
    """How many of the runs are computed again at a time."""
    configs = [run.record.config for run in runs]
    large = any(
        training_operations(config.options) * config.batch_size > LARGE for config in configs
    )
    # With NumPy's own threads for each product, these would wait for each other: 20 s on 2 cores,
    # where one after the other takes 18, and where these alone take 11.
    alone = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return min(MOST, cores()) if alone and not large else 1
