"""The same nets in PyTorch."""

from typing import Any

from torch import nn
from torch.nn import functional as F


def lenet() -> Any:
    """The book's LeNet."""
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)),
    )


class Residual(nn.Module):  # type: ignore[misc]
    """Two convolutions and a shortcut around them."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(before, channels, 3, stride, 1), nn.BatchNorm2d(channels), nn.ReLU()),
            *(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels)),
        )
        self.shortcut = nn.Conv2d(before, channels, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, X: Any) -> Any:
        """Images (n, channels, rows, columns), at `stride`."""
        return F.relu(self.body(X) + self.shortcut(X))


def resnet18(width: int) -> Any:
    """The book's ResNet-18."""
    net = [nn.Conv2d(1, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage in range(4):
        for block in range(2):
            channels = width * 2**stage
            net.append(Residual(before, channels, 2 if stage and not block else 1))
            before = channels
    return nn.Sequential(*net, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))
