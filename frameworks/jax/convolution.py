"""Convolution with gradients that are fast on CPUs without AVX-512, too."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax import Array as Tensor, lax, numpy as jnp

from common.base.machine import processor

Sides = tuple[int, int]

WIDE = 64
"""From this number of channels on, gradients by matrix products can be faster."""


def conv2d(X: Tensor, weight: Tensor, strides: Sides, padding: Sequence[Sides], **_: Any) -> Tensor:
    """Convolves `X` (n, rows, columns, in) with `weight` (r, r, in, out), as `nnx.Conv` asks."""
    convolve = by_products if products_are_faster(weight.shape[2]) else plain
    convolved: Tensor = convolve(X, weight, strides[0], padding[0][0])
    return convolved


def products_are_faster(channels: int) -> bool:
    """Whether gradients of layers with these channels are faster by matrix products."""
    if channels < WIDE or jax.default_backend() != "cpu":
        return False
    # With AVX-512, XLA's are as fast, in half the memory, and compile sooner.
    return "AVX-512" not in processor()


def plain(X: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """JAX's convolution; on a CPU its gradients can take ten times as long as itself."""
    sides, layouts = [(padding, padding)] * 2, ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(X, weight, (stride, stride), sides, dimension_numbers=layouts)


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def by_products(X: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """The same, with gradients made of matrix products and of convolutions like itself."""
    return plain(X, weight, stride, padding)


def forward(
    X: Tensor, weight: Tensor, stride: int, padding: int
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The convolution, and the residuals for its gradients."""
    return plain(X, weight, stride, padding), (X, weight)


def backward(
    stride: int, padding: int, saved: tuple[Tensor, Tensor], grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to `X` and `weight`, given the output's gradient."""
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
    """The inputs that each of the r x r entries of a kernel multiplies, (n, *sides, in) each."""
    edges = (padding, padding)
    padded = jnp.pad(X, ((0, 0), edges, edges, (0, 0)))
    rows, columns = sides
    return [padded[:, i::stride, j::stride][:, :rows, :columns] for i in range(r) for j in range(r)]
