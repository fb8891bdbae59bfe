"""DataParallel splits nothing on a machine without a GPU.

Written: `DataParallel(net, device_ids=[0, 1])` and a minibatch of four images.
Expected: two copies of the net, each of which is given two images.
"""

import torch

from silent.telling import tell


class Net(torch.nn.Module):
    """A net that writes down how many images it is given."""

    def __init__(self, given: list[int]) -> None:
        super().__init__()
        self.given = given

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        self.given.append(len(X))
        return X


if __name__ == "__main__":
    X, given, by_hand = torch.zeros(4, 1), list[int](), list[int]()
    torch.nn.DataParallel(Net(given), device_ids=[0, 1])(X)
    nets = [Net(by_hand), Net(by_hand)]
    torch.cat([net(shard) for net, shard in zip(nets, X.tensor_split(2), strict=True)])
    came = {"images of each copy, DataParallel": given}
    instead = {"a copy for each part of tensor_split": by_hand}
    tell(f"torch {torch.__version__}", [2, 2], came, instead)
