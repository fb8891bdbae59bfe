"""A process group of two, as `torchrun --nproc-per-node 2` starts it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import distributed as dist
from torch.multiprocessing import start_processes

from silent.report import report


def report_of_two(expected: Any, work: Callable[[int], tuple[Mapping[str, Any], ...]]) -> None:
    """Runs `work(rank)`, which returns results and remedies, in two processes; rank 0 reports."""
    with TemporaryDirectory() as folder:
        store = Path(folder, "store").as_uri()
        start_processes(_join, (store, expected, work), nprocs=2, start_method="fork")


def _join(rank: int, store: str, expected: Any, work: Callable[[int], Any]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store, rank=rank, world_size=2)
    numbers = work(rank)
    dist.destroy_process_group()
    if rank == 0:
        report(f"torch {torch.__version__}", expected, *numbers)
