"""The book's package in PyTorch: its loader, its ResNet-18 and its training of a minibatch."""

from typing import Any

import torch
from torch import nn

from bench.d2l_package import loader, package
from bench.plan import Workload
from bench.torch_nets import lenet
from common.data.dataset import Bytes


class Fit:
    """What a reader of the book would run; the package's own LeNet is another net."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self.d2l = workload, package("pytorch")
        # The package has it in one width, the workload's.
        self.net = self.d2l.resnet18(10) if workload.width else lenet()
        self.net(torch.zeros(1, 1, 28, 28))  # now it knows its shapes
        self.trainer = torch.optim.SGD(self.net.parameters(), workload.lr)
        self.loss = nn.CrossEntropyLoss()

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """The package's loader; ResNet-18's few minibatches are loaded before."""
        batches = loader(self.d2l, self.workload.batch_size, images, labels)
        return list(batches) if self.workload.width else batches

    def train(self, data: Any) -> None:
        """One epoch."""
        train_batch, devices = self.d2l.train_batch_ch13, [torch.device("cpu")]
        for X, y in data:
            train_batch(self.net, X, y, self.loss, self.trainer, devices)
