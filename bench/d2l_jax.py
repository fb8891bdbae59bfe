"""The book's package in JAX: its loader and its residual blocks, in a compiled step."""

from typing import Any

import jax
import optax
from flax import linen as nn

from bench.d2l_package import loader, package
from bench.plan import Workload
from common.data.dataset import Bytes


class Fit:
    """What a reader of the book would run; the package's own loop stops at a name that JAX lost."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self.d2l = workload, package("jax")
        self.net = resnet18(self.d2l, workload.width) if workload.width else lenet()
        variables = self.net.init(jax.random.key(8), jax.numpy.zeros((1, 28, 28, 1)))
        self.optimizer = optax.sgd(workload.lr)
        self.state = variables, self.optimizer.init(variables["params"])
        self.step = jax.jit(self.train_batch)

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """The package's loader."""
        return loader(self.d2l, self.workload.batch_size, images, labels)

    def train(self, data: Any) -> None:
        """One epoch."""
        for X, y in data:
            self.state = self.step(self.state, X, y)
        jax.block_until_ready(self.state)

    def train_batch(self, state: Any, X: Any, y: Any) -> Any:
        """One step of SGD: the variables and the optimizer's state after it."""
        variables, remembered = state

        def mean_loss(params: Any) -> Any:
            known = {**variables, "params": params}
            y_hat, others = self.net.apply(known, X, mutable="batch_stats")
            return optax.softmax_cross_entropy_with_integer_labels(y_hat, y).mean(), others

        grads, others = jax.grad(mean_loss, has_aux=True)(variables["params"])
        updates, remembered = self.optimizer.update(grads, remembered)
        params = optax.apply_updates(variables["params"], updates)
        return {**others, "params": params}, remembered


def lenet() -> Any:
    """The book's LeNet; the package's is another net."""
    return nn.Sequential(
        [
            *(nn.Conv(20, (3, 3), padding="VALID"), nn.relu, halved),
            *(nn.Conv(50, (5, 5), padding="VALID"), nn.relu, halved),
            *(lambda X: X.reshape(len(X), -1), nn.Dense(128), nn.relu, nn.Dense(10)),
        ]
    )


def halved(X: Any) -> Any:
    """The averages of 2 by 2 pixels."""
    return nn.avg_pool(X, (2, 2), (2, 2))


def resnet18(d2l: Any, width: int) -> Any:
    """The book's ResNet-18, which the package has for other frameworks, of the package's blocks."""
    net = [nn.Conv(width, (3, 3)), nn.BatchNorm(use_running_average=False), nn.relu]
    for stage in range(4):
        for block in range(2):
            first = stage > 0 and block == 0
            net.append(d2l.Residual(width * 2**stage, first, (1 + first, 1 + first)))
    return nn.Sequential([*net, lambda X: X.mean((1, 2)), nn.Dense(10)])
