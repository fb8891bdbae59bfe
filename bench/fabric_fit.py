"""The same nets in PyTorch by Lightning Fabric: on one GPU, or in two processes on the CPU."""

import atexit
import gc
import logging
from typing import Any

import torch

# Imported while a group is up, its default arguments would keep that group alive.
import torch.distributed.nn
from lightning_fabric import Fabric
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from bench.plan import Workload
from common.data.dataset import Bytes, pixels


class Fit:
    """A loop of Fabric with plain modules; on CPUs it starts this script again as process 2."""

    def __init__(self, workload: Workload) -> None:
        logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
        if torch.cuda.is_available():
            self.fabric = Fabric(accelerator="cuda", devices=1)
        else:
            self.fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
            atexit.register(leave_group)
        self.fabric.launch()
        self.local_batch = workload.batch_size // self.fabric.world_size
        net = lenet() if workload.width is None else resnet18(workload.width)
        self.net, self.optimizer = self.fabric.setup(
            net, torch.optim.SGD(net.parameters(), workload.lr)
        )

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """Images in 0..1 and labels: this process's part of shuffled minibatches."""
        tensors = (
            torch.from_numpy(pixels(images, "float32")),
            torch.tensor(labels, dtype=torch.long),
        )
        data = DataLoader(TensorDataset(*tensors), self.local_batch, shuffle=True)
        return self.fabric.setup_dataloaders(data)

    def train(self, data: Any) -> None:
        """Trains for one epoch."""
        for X, y in data:
            self.optimizer.zero_grad()
            self.fabric.backward(F.cross_entropy(self.net(X), y))
            self.optimizer.step()
        if self.fabric.device.type == "cuda":
            torch.cuda.synchronize()


def leave_group() -> None:
    """Ends the process group; a wrapper that outlived it could abort the process."""
    gc.collect()
    dist.destroy_process_group()


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
