"""The float32 matrix product of each framework: what a machine can do at best."""

import importlib
from collections.abc import Callable
from typing import Any

Product = Callable[[int], Any]
"""Multiplies two square matrices of this side, and returns when it is done."""


def pytorch() -> Product:
    """PyTorch's."""
    torch: Any = importlib.import_module("torch")
    return lambda side: (torch.ones(side, side) @ torch.ones(side, side)).sum().item()


def tensorflow() -> Product:
    """TensorFlow's."""
    tf: Any = importlib.import_module("tensorflow")
    return lambda side: float((tf.ones((side, side)) @ tf.ones((side, side)))[0, 0])


def jax() -> Product:
    """JAX's."""
    jnp: Any = importlib.import_module("jax.numpy")
    return lambda side: (jnp.ones((side, side)) @ jnp.ones((side, side))).block_until_ready()


def mxnet() -> Product:
    """MXNet's."""
    mx: Any = importlib.import_module("mxnet")
    mx.npx.set_np()
    return lambda side: mx.np.dot(mx.np.ones((side, side)), mx.np.ones((side, side))).wait_to_read()


PRODUCTS = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax, "mxnet": mxnet}
