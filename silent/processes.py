"""Two processes that `torch.distributed` joins, as `torchrun --nproc-per-node 2` starts them."""

import signal
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import distributed as dist

from common.base.children import end, start


def by_two(work: Callable[[int], Any]) -> Any:
    """What `work(rank)` returns in the process of rank 0."""
    store = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    result, sent = Pipe(duplex=False)
    processes = [start(_join, work, rank, store.port, sent) for rank in range(2)]
    sent.close()
    try:
        return result.recv()  # EOFError if the process ends without a result
    finally:
        end(processes)


def _join(work: Callable[[int], Any], rank: int, port: int, sent: Connection) -> None:
    if rank > 0:
        sent.close()  # so it closes with the process of rank 0
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, None, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    result = work(rank)
    if rank == 0:
        sent.send(result)
    signal.pause()  # neither leaves while the other needs it; `by_two` ends both
