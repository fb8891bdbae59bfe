"""Convolution, with gradients that CPUs compute fast."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax import Array as Tensor
from jax import lax
from jax import numpy as jnp

Sides = tuple[int, int]

WIDE = 64
"""Channels from which on gradients by products are the faster ones."""


def conv2d(X: Tensor, weight: Tensor, strides: Sides, padding: Sequence[Sides], **_: Any) -> Tensor:
    """Convolves `X` (n, rows, columns, in) with `weight` (r, r, in, out), as `nnx.Conv` asks.

    Strides and padding are the same on all sides.
    """
    wide = weight.shape[2] >= WIDE and jax.default_backend() == "cpu"
    convolve = by_products if wide else plain
    convolved: Tensor = convolve(X, weight, strides[0], padding[0][0])
    return convolved


def plain(X: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """JAX's own convolution; on CPUs its gradients take up to ten times as long as itself."""
    sides, layouts = [(padding, padding)] * 2, ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(X, weight, (stride, stride), sides, dimension_numbers=layouts)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def by_products(X: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """The same, with gradients made of matrix products and of convolutions like itself."""
    return plain(X, weight, stride, padding)


def forward(
    X: Tensor, weight: Tensor, stride: int, padding: int
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The convolution, and what its gradients are made from."""
    return plain(X, weight, stride, padding), (X, weight)


def backward(
    stride: int, padding: int, saved: tuple[Tensor, Tensor], grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to `X` and `weight`, from that of the result."""
    X, weight = saved
    (r, _, channels, out), (_, rows, columns, _) = weight.shape, grad.shape
    find = partial(windows, r=r, stride=stride, padding=padding, sides=(rows, columns))
    views, add_up = jax.vjp(find, X)
    weight_grad = [jnp.tensordot(view, grad, ((0, 1, 2), (0, 1, 2))) for view in views]
    if stride == 1:
        image_grad = plain(grad, weight[::-1, ::-1].swapaxes(2, 3), 1, r - 1 - padding)
    else:
        (image_grad,) = add_up([grad @ matrix.T for matrix in weight.reshape(-1, channels, out)])
    return image_grad, jnp.stack(weight_grad).reshape(weight.shape)


by_products.defvjp(forward, backward)


def windows(X: Tensor, r: int, stride: int, padding: int, sides: Sides) -> list[Tensor]:
    """What each of the r x r entries of a kernel is multiplied by, (n, *sides, in) each."""
    edges = (padding, padding)
    padded = jnp.pad(X, ((0, 0), edges, edges, (0, 0)))
    rows, columns = sides
    return [padded[:, i::stride, j::stride][:, :rows, :columns] for i in range(r) for j in range(r)]
