"""DistributedDataParallel and fully_shard take the mean over processes, not over examples.

Written: the gradient of the mean loss of each process, which has two examples, or one.
Expected: the gradient of the mean loss over all three examples.
"""

import numpy as np
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from silent.processes import report_of_two

X = np.array([[1.0], [2.0], [6.0]])
SHARDS = X[:2], X[2:]
WRAPPERS = {
    "DistributedDataParallel": DistributedDataParallel,
    "fully_shard": lambda net: fully_shard(net, mesh=init_device_mesh("cpu", (2,))),
}


def gradient(wrapper: str, scale: float, rank: int) -> float:
    net = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
    wrapped = WRAPPERS[wrapper](net)
    (wrapped(torch.from_numpy(SHARDS[rank])).mean() * scale).backward()
    grad = net.weight.grad
    return (grad.full_tensor() if hasattr(grad, "full_tensor") else grad).item()


def gradients(rank: int) -> tuple[dict[str, float], ...]:
    scale = len(SHARDS) * len(SHARDS[rank]) / len(X)
    return (
        {name: gradient(name, 1, rank) for name in WRAPPERS},
        {f"{name}, loss * k * n_rank / n": gradient(name, scale, rank) for name in WRAPPERS},
    )


if __name__ == "__main__":
    report_of_two(X.mean(), gradients)
