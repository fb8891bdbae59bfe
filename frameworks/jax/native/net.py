"""LeNet for a whole minibatch, examples last; layouts are said elsewhere.

No axis that may be split is merged with one before it: the compiler would gather it.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isqrt

from jax import Array as Tensor, numpy as jnp

from frameworks.jax.kernels import avg_pool2d, images, relu
from frameworks.jax.scratch import loss

Params = dict[str, Tensor]


def conv2d(X: Tensor, weight: Tensor) -> Tensor:
    """Convolves `X` (in, rows, columns, n) with `weight` (out, in, r, c), without padding."""
    r, c = weight.shape[2:]
    rows, columns = X.shape[1] - r + 1, X.shape[2] - c + 1
    strips = jnp.stack([X[:, i : i + rows] for i in range(r)], axis=1)
    patches = jnp.stack([strips[..., j : j + columns, :] for j in range(c)], axis=2)
    return jnp.einsum("oirc,ircyxn->oyxn", weight, patches)


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X` (..., n), with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if weight.ndim == 4:
        channels, n = weight.shape[1], X.shape[-1]
        side = isqrt(X.size // channels // n)
        Y = conv2d(X.reshape(channels, side, side, n), weight)
        return avg_pool2d(relu(Y + bias[:, None, None, None]))
    Y = weight.T @ X.reshape(len(weight), -1) + bias[:, None]
    return Y if name == "fc2" else relu(Y)


def lenet(
    X: Tensor, params: Params, names: Sequence[str], layer: Callable[[str, Tensor, Params], Tensor]
) -> Tensor:
    """The logits (n, 10) of images (n, 1, 28, 28), by layers of these names."""
    Y = images(X)
    for name in names:
        Y = layer(name, Y, {key: params[key] for key in (f"{name}.weight", f"{name}.bias")})
    return Y.T


def mean_loss(logits: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """The weighted sum of the losses of some examples."""
    return (loss(logits, y) * share).sum()
