"""LeNet as Gluon's users write it."""

from typing import Any

from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

from common.base.arrays import Array, Weights

npx.set_np()


class Port:
    """A block and a `Trainer`. `Dense` has its weight as (outputs, inputs)."""

    def start(self, weights: Weights) -> None:
        self.net = nn.Sequential()
        self.net.add(nn.Conv2D(20, 3, activation="relu"), nn.AvgPool2D())
        self.net.add(nn.Conv2D(50, 5, activation="relu"), nn.AvgPool2D())
        self.net.add(nn.Dense(128, activation="relu"), nn.Dense(10))
        self.net.initialize()
        self.net(np.zeros((1, 1, 28, 28)))  # the shapes of parameters follow from an image
        self.net.cast("float64")
        self.params = dict(zip(weights, self.net.collect_params().values(), strict=True))
        for name, param in self.params.items():
            values = np.array(weights[name], "float64")
            param.set_data(values.T if values.ndim == 2 else values)
        self.trainer = gluon.Trainer(self.net.collect_params(), "sgd", kvstore=None)

    def logits(self, X: Array) -> Any:
        return self.net(np.array(X, "float64"))

    def step(self, X: Array, y: Array, lr: float) -> Any:
        self.trainer.set_learning_rate(lr)
        with autograd.record():
            loss = gluon.loss.SoftmaxCrossEntropyLoss()(self.logits(X), np.array(y))
        loss.backward()
        self.trainer.step(len(y))  # divides the sum of the gradients
        return loss.mean()

    def weights(self) -> dict[str, Any]:
        tensors = {name: param.data() for name, param in self.params.items()}
        return {name: v.T if v.ndim == 2 else v for name, v in tensors.items()}
