"""DTensor's convolution with split filters loses channels, or sums only a part of them.

Written: filters as a DTensor that is split over two processes, by output channels (`Shard(0)`) or
by input channels (`Shard(1)`), and `conv2d`, as one would split a dense layer.
Expected: the output of `conv2d` in one process.
"""

from typing import Any

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.functional import conv2d

from silent.processes import report_of_two

X = torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1)  # an image of one pixel, with two channels
FILTERS = torch.arange(1.0, 9.0).reshape(4, 2, 1, 1)  # four output channels


def convolve(rank: int) -> tuple[dict[str, Any], ...]:
    mesh = init_device_mesh("cpu", (2,))
    whole = distribute_tensor(X, mesh, [Replicate()])
    halves = distribute_tensor(X, mesh, [Shard(1)])
    by_out = distribute_tensor(FILTERS, mesh, [Shard(0)])
    by_in = distribute_tensor(FILTERS, mesh, [Shard(1)])
    results = {
        "filters with Shard(0)": conv2d(whole, by_out).full_tensor().tolist(),
        "filters with Shard(1)": conv2d(halves, by_in).full_tensor().tolist(),
    }
    # Each process convolves its shard. Then the channels are joined, or the terms added, by hand.
    parts = [torch.empty(1, 2, 1, 1) for _ in range(2)]
    dist.all_gather(parts, conv2d(X, by_out.to_local()))
    total = conv2d(halves.to_local(), by_in.to_local())
    dist.all_reduce(total)
    remedies = {
        "to_local(), then all_gather": torch.cat(parts, dim=1).tolist(),
        "to_local(), then all_reduce": total.tolist(),
    }
    return results, remedies


if __name__ == "__main__":
    report_of_two(conv2d(X, FILTERS), convolve)
