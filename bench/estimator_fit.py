"""The same nets in Gluon, trained by its `Estimator`, whose metrics know no NumPy arrays."""

import logging
from typing import Any

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import Estimator

from bench.plan import Workload
from common.data.dataset import Bytes, pixels


class Fit:
    """The code of a Gluon user: a DataLoader, a hybridized net, `Estimator.fit`."""

    def __init__(self, workload: Workload) -> None:
        self.batch_size = workload.batch_size
        net = lenet() if workload.width is None else resnet18(workload.width)
        context = mx.gpu() if mx.context.num_gpus() else mx.cpu()
        net.initialize(mx.init.Xavier(), ctx=context)
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": workload.lr})
        loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.estimator = Estimator(net=net, loss=loss, trainer=trainer, context=context)
        self.estimator.logger.setLevel(logging.ERROR)

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """Images in 0..1 and labels, in shuffled minibatches."""
        data = gluon.data.ArrayDataset(pixels(images, "float32"), labels.astype("int32"))
        return gluon.data.DataLoader(data, self.batch_size, shuffle=True)

    def train(self, data: Any) -> None:
        """One epoch."""
        self.estimator.fit(train_data=data, epochs=1)
        mx.nd.waitall()


def lenet() -> Any:
    """The book's LeNet."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D(2, 2))
    net.add(nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D(2, 2))
    net.add(nn.Flatten(), nn.Dense(128, activation="relu"), nn.Dense(10))
    return net


class Residual(nn.HybridBlock):  # type: ignore[misc]
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Conv2D(channels, 3, stride, 1), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(nn.Conv2D(channels, 3, 1, 1), nn.BatchNorm())
        self.shortcut = nn.Conv2D(channels, 1, stride) if stride > 1 else None

    def hybrid_forward(self, F: Any, X: Any) -> Any:
        """Images (n, channels, rows, columns), at `stride`."""
        return F.relu(self.body(X) + (self.shortcut(X) if self.shortcut else X))


def resnet18(width: int) -> Any:
    """The book's ResNet-18."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(width, 3, 1, 1), nn.BatchNorm(), nn.Activation("relu"))
    for stage in range(4):
        for block in range(2):
            net.add(Residual(width * 2**stage, 2 if stage and not block else 1))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10))
    return net
