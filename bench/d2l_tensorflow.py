"""The book's package in TensorFlow: its loader and its residual blocks, trained by `fit`."""

from typing import Any

import keras
from keras import layers

from bench.d2l_package import loader, package
from bench.keras_fit import lenet, norm
from bench.plan import Workload
from common.data.dataset import Bytes


class Fit:
    """What a reader of the book would run: its own loop in this framework calls `fit`, too."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self.d2l = workload, package("tensorflow")
        self.net = resnet18(self.d2l, workload.width) if workload.width else lenet()
        self.net.compile(
            optimizer=keras.optimizers.SGD(workload.lr),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """The package's loader."""
        return loader(self.d2l, self.workload.batch_size, images, labels)

    def train(self, data: Any) -> None:
        """One epoch."""
        self.net.fit(data, epochs=1, verbose=0)


def resnet18(d2l: Any, width: int) -> Any:
    """The book's ResNet-18, which the package has for other frameworks, of the package's blocks."""
    net = [layers.Conv2D(width, 3, padding="same"), norm(), layers.ReLU()]
    for stage in range(4):
        for block in range(2):
            first = stage > 0 and block == 0
            net.append(d2l.Residual(width * 2**stage, use_1x1conv=first, strides=1 + first))
    net += [layers.GlobalAveragePooling2D(), layers.Dense(10)]
    return keras.Sequential([layers.Input((28, 28, 1)), *net])
