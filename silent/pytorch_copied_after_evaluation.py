"""Weights that are copied in after an evaluation are lost under `reshard_after_forward=False`.

Written: `fully_shard(net, reshard_after_forward=False)`, an evaluation, then `param.copy_(...)`.
After a forward pass without a backward one, the parameters of the net are whole copies. The next
step drops the copies, with the values that were written into them.
Expected: the weights that were copied in, after a step with a rate of 0.
"""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from silent.processes import report_of_two


def after_a_step(reshard: bool) -> list[float]:
    net = torch.nn.Linear(1, 2, bias=False)
    torch.nn.init.ones_(net.weight)
    fully_shard(net, mesh=init_device_mesh("cpu", (2,)), reshard_after_forward=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    values = torch.full((2, 1), 3.0)
    with torch.no_grad():
        net(torch.ones(1, 1))
        if reshard:
            net.reshard()
        for param in net.parameters():
            if isinstance(param, DTensor):
                values = distribute_tensor(values, param.device_mesh, param.placements)
            param.copy_(values)
    net(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    return net.weight.full_tensor().flatten().tolist()


def steps(rank: int) -> tuple[dict[str, list[float]], ...]:
    return (
        {"evaluation, param.copy_()": after_a_step(reshard=False)},
        {"evaluation, net.reshard(), param.copy_()": after_a_step(reshard=True)},
    )


if __name__ == "__main__":
    report_of_two([3.0, 3.0], steps)
