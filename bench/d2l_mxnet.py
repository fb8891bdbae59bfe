"""The book's package in MXNet: its loader, its ResNet-18 and its training of a minibatch."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

from bench.d2l_package import loader, package
from bench.plan import Workload
from common.data.dataset import Bytes


class Fit:
    """What a reader of the book would run."""

    def __init__(self, workload: Workload) -> None:
        mx.npx.set_np()
        self.workload, self.d2l = workload, package("mxnet")
        # The package has it in one width, the workload's.
        self.net = self.d2l.resnet18(10) if workload.width else lenet()
        self.net.initialize(mx.init.Xavier())
        params = self.net.collect_params()
        self.trainer = gluon.Trainer(params, "sgd", {"learning_rate": workload.lr})
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """The package's loader; ResNet-18's few minibatches are loaded before."""
        # MXNet's own archives are compressed otherwise: by their checksums it would fetch them.
        with patch("mxnet.gluon.data.vision.datasets.download", found):
            batches = loader(self.d2l, self.workload.batch_size, images, labels)
        return list(batches) if self.workload.width else batches

    def train(self, data: Any) -> None:
        """One epoch."""
        train_batch, devices = self.d2l.train_batch_ch13, [mx.cpu()]
        for X, y in data:
            train_batch(self.net, X, y, self.loss, self.trainer, devices)
        mx.npx.waitall()


def lenet() -> Any:
    """The book's LeNet; the package's is another net."""
    net = nn.Sequential()
    net.add(nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D(2, 2))
    net.add(nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D(2, 2))
    net.add(nn.Dense(128, activation="relu"), nn.Dense(10))
    return net


def found(url: str, path: str, **_: Any) -> str:
    """The file in the folder `path` that would have been downloaded."""
    return str(Path(path) / url.rpartition("/")[2])
