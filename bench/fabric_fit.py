"""The same nets in PyTorch by Lightning Fabric: on one GPU, or in two processes on the CPU."""

import atexit
import gc
import logging
from typing import Any

import torch

# Imported while a group is up, its default arguments would keep that group alive.
import torch.distributed.nn
from lightning_fabric import Fabric
from torch import distributed as dist
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from bench.plan import Workload
from bench.torch_nets import lenet, resnet18
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
