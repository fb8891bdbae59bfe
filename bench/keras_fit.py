"""The same nets in Keras 3, on the backend that KERAS_BACKEND names, trained by `fit`."""

from typing import Any

import keras
from keras import layers

from bench.plan import Workload
from common.data.dataset import Bytes, pixels


class Fit:
    """The code of a Keras user: images in memory, `compile`, `fit`."""

    def __init__(self, workload: Workload) -> None:
        self.batch_size = workload.batch_size
        self.net = lenet() if workload.width is None else resnet18(workload.width)
        self.net.compile(
            optimizer=keras.optimizers.SGD(workload.lr),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """Images (n, 28, 28, 1) in 0..1, and labels."""
        return pixels(images, "float32").reshape(-1, 28, 28, 1), labels

    def train(self, data: Any) -> None:
        """One epoch."""
        self.net.fit(*data, batch_size=self.batch_size, epochs=1, verbose=0)


def lenet() -> Any:
    """The book's LeNet."""
    return keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(20, 3, activation="relu"),
            layers.AveragePooling2D(2),
            layers.Conv2D(50, 5, activation="relu"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )


def resnet18(width: int) -> Any:
    """The book's ResNet-18."""
    images = layers.Input((28, 28, 1))
    Y = layers.ReLU()(norm()(layers.Conv2D(width, 3, padding="same")(images)))
    for stage in range(4):
        for block in range(2):
            Y = residual(Y, width * 2**stage, 2 if stage and not block else 1)
    return keras.Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(Y)))


def residual(X: Any, channels: int, stride: int) -> Any:
    """Two convolutions and a shortcut around them."""
    Y = layers.ReLU()(norm()(layers.Conv2D(channels, 3, stride, padding="same")(X)))
    Y = norm()(layers.Conv2D(channels, 3, padding="same")(Y))
    shortcut = layers.Conv2D(channels, 1, stride)(X) if stride > 1 else X
    return layers.ReLU()(layers.Add()([Y, shortcut]))


def norm() -> Any:
    """Batch normalization with the book's momentum and epsilon."""
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
