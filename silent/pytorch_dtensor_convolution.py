"""DTensor's convolution with split filters loses channels, or sums too few of them.

Written: filters as a DTensor that is split over two processes, by channels out (`Shard(0)`) or by
channels in (`Shard(1)`), and `conv2d`, as one would split a dense layer.
Expected: what `conv2d` gives in one process.
"""

from typing import Any

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.functional import conv2d

from silent.processes import by_two
from silent.telling import tell

X = torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1)  # an image of one pixel, with two channels
FILTERS = torch.arange(1.0, 9.0).reshape(4, 2, 1, 1)  # four channels out


def convolve(rank: int) -> list[dict[str, Any]]:
    mesh = init_device_mesh("cpu", (2,))
    whole = distribute_tensor(X, mesh, [Replicate()])
    halves = distribute_tensor(X, mesh, [Shard(1)])
    by_out = distribute_tensor(FILTERS, mesh, [Shard(0)])
    by_in = distribute_tensor(FILTERS, mesh, [Shard(1)])
    came = {
        "filters with Shard(0)": conv2d(whole, by_out).full_tensor().tolist(),
        "filters with Shard(1)": conv2d(halves, by_in).full_tensor().tolist(),
    }
    # Each process convolves what it has. Then the channels are joined, or the parts added, by hand.
    parts = [torch.empty(1, 2, 1, 1) for _ in range(2)]
    dist.all_gather(parts, conv2d(X, by_out.to_local()))
    total = conv2d(halves.to_local(), by_in.to_local())
    dist.all_reduce(total)
    instead = {
        "to_local(), then all_gather": torch.cat(parts, dim=1).tolist(),
        "to_local(), then all_reduce": total.tolist(),
    }
    return [came, instead]


if __name__ == "__main__":
    came, instead = by_two(convolve)
    tell(f"torch {torch.__version__}", conv2d(X, FILTERS), came, instead)
