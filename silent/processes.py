"""A process group of two, as `torchrun --nproc-per-node 2` starts it."""

import signal
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import distributed as dist

from common.base.children import end, start


def run_on_two(work: Callable[[int], Any]) -> Any:
    """Runs `work(rank)` in two processes, and returns the result of rank 0."""
    store = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    receiver, sender = Pipe(duplex=False)
    processes = [start(_join, work, rank, store.port, sender) for rank in range(2)]
    sender.close()
    try:
        return receiver.recv()  # EOFError if the process ends without a result
    finally:
        end(processes)


def _join(work: Callable[[int], Any], rank: int, port: int, sender: Connection) -> None:
    if rank > 0:
        sender.close()  # so the pipe closes with the process of rank 0
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, None, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    result = work(rank)
    if rank == 0:
        sender.send(result)
    signal.pause()  # neither leaves while the other needs it; `run_on_two` ends both
