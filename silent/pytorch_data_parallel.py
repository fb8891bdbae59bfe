"""DataParallel splits nothing on a machine without a GPU.

Written: `DataParallel(net, device_ids=[0, 1])` and a minibatch of four images.
Expected: two copies of the net, each with two images.
"""

import torch

from silent.report import report


def recorder(sizes: list[int]) -> torch.nn.Module:
    """A net that records the number of images of each call."""
    net = torch.nn.Identity()
    net.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    return net


if __name__ == "__main__":
    X, sizes, by_hand = torch.zeros(4, 1), list[int](), list[int]()
    torch.nn.DataParallel(recorder(sizes), device_ids=[0, 1])(X)
    nets = [recorder(by_hand), recorder(by_hand)]
    torch.cat([net(shard) for net, shard in zip(nets, X.tensor_split(2), strict=True)])
    results = {"images of each copy, DataParallel": sizes}
    remedies = {"a copy for each part of tensor_split": by_hand}
    report(f"torch {torch.__version__}", [2, 2], results, remedies)
