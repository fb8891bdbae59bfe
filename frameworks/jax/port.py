"""LeNet as JAX's users write it, without a library of layers."""

import jax
from jax import Array as Tensor, lax, numpy as jnp

from common.base.arrays import Array, Weights

Params = dict[str, Tensor]


class Port:
    """Functions of the parameters. The layouts are those of `weights`."""

    def start(self, weights: Weights) -> None:
        self.params = {name: jnp.array(values) for name, values in weights.items()}
        self.loss_and_grad = jax.jit(jax.value_and_grad(self.mean_loss))

    def logits(self, X: Array) -> Tensor:
        return self.lenet(self.params, jnp.array(X))

    def lenet(self, w: Params, X: Tensor) -> Tensor:
        for layer in ("conv1", "conv2"):
            X = lax.conv(X, w[f"{layer}.weight"], (1, 1), "VALID")
            X = jax.nn.relu(X + w[f"{layer}.bias"][:, None, None])
            X = lax.reduce_window(X, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
        X = jax.nn.relu(X.reshape(len(X), -1) @ w["fc1.weight"] + w["fc1.bias"])
        return X @ w["fc2.weight"] + w["fc2.bias"]

    def mean_loss(self, params: Params, X: Tensor, y: Tensor) -> Tensor:
        likelihoods = jax.nn.log_softmax(self.lenet(params, X))
        return -jnp.take_along_axis(likelihoods, y[:, None], axis=1).mean()

    def step(self, X: Array, y: Array, lr: float) -> Tensor:
        loss: Tensor
        loss, grads = self.loss_and_grad(self.params, jnp.array(X), jnp.array(y))
        self.params = jax.tree.map(lambda w, grad: w - lr * grad, self.params, grads)
        return loss

    def weights(self) -> Params:
        return self.params
