"""LeNet's layers, one by one, as strategies split them, in JAX."""

from collections.abc import Mapping, Sequence
from functools import partial

import jax
from jax import Array as Tensor, numpy as jnp

from frameworks.jax import scratch
from frameworks.jax.kernels import avg_pool2d, conv2d, dense, relu
from frameworks.jax.scratch import loss

__all__ = ["loss"]

layer = jax.jit(scratch.layer, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def product(layers: Sequence[str], X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a column- and a row-parallel layer, without the latter's bias."""
    column, row = layers
    X, weight = layer(column, X, params), params[f"{row}.weight"]
    if row.startswith("conv"):
        return conv2d(X, weight, jnp.zeros(len(weight), weight.dtype))
    return dense(X, weight, jnp.zeros(weight.shape[1], weight.dtype))


@partial(jax.jit, static_argnums=0)
def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)
