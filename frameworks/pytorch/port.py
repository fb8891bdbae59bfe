"""LeNet as PyTorch's users write it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from common.base.arrays import Array, Weights


class Port:
    """A module and an optimizer. `Linear` has its weight as (outputs, inputs)."""

    def start(self, weights: Weights) -> None:
        first = nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2)
        second = nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()
        dense = nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)
        self.net = nn.Sequential(*first, *second, *dense).double()
        self.params = dict(zip(weights, self.net.parameters(), strict=True))
        for name, param in self.params.items():
            values = torch.tensor(weights[name])
            param.data = values.T if values.ndim == 2 else values
        self.optimizer = torch.optim.SGD(self.net.parameters())

    def logits(self, X: Array) -> Any:
        return self.net(torch.tensor(X))

    def step(self, X: Array, y: Array, lr: float) -> Tensor:
        self.optimizer.param_groups[0]["lr"] = lr
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.logits(X), torch.tensor(y))
        loss.backward()
        self.optimizer.step()
        return loss

    def weights(self) -> dict[str, Tensor]:
        return {name: v.T if v.ndim == 2 else v for name, v in self.params.items()}
