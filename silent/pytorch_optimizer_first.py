"""An optimizer made before the net is split updates nothing.

Written: `SGD(net.parameters())`, then `fully_shard(net)` or `parallelize_module(net, ...)`. Both
put new parameters in the place of the old ones, which the optimizer keeps.
Expected: the step that the net takes in one process.
"""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from silent.processes import report_of_two


def split(net: torch.nn.Module, how: str) -> None:
    mesh = init_device_mesh("cpu", (2,))
    if how == "fully_shard":
        fully_shard(net, mesh=mesh)
    else:
        parallelize_module(net, mesh, ColwiseParallel(use_local_output=False))


def after_a_step(how: str, optimizer_first: bool) -> list[float]:
    net = torch.nn.Linear(1, 2, bias=False)
    torch.nn.init.ones_(net.weight)
    early = torch.optim.SGD(net.parameters(), lr=0.5)
    split(net, how)
    optimizer = early if optimizer_first else torch.optim.SGD(net.parameters(), lr=0.5)
    net(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    return net.weight.full_tensor().flatten().tolist()


def steps(rank: int) -> tuple[dict[str, list[float]], ...]:
    methods = "fully_shard", "parallelize_module"
    return (
        {f"SGD, then {how}": after_a_step(how, optimizer_first=True) for how in methods},
        {f"{how}, then SGD": after_a_step(how, optimizer_first=False) for how in methods},
    )


if __name__ == "__main__":
    report_of_two([0.5, 0.5], steps)
