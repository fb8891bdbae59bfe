"""An independent LeNet in NumPy: forward, backward and SGD, in float64 unless told otherwise.

It shares no code with the backends: convolutions are sums over window positions, every gradient
is derived by hand. Shapes are the canonical ones of `common.models.weights_file`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = dict[str, Array]


def conv(X: Array, weight: Array, bias: Array) -> Array:
    """(n, in, h, w) with (out, in, r, c) gives (n, out, h - r + 1, w - c + 1)."""
    _, _, r, c = weight.shape
    h, w = X.shape[2] - r + 1, X.shape[3] - c + 1
    total = sum(
        np.einsum("nihw,oi->nohw", X[:, :, i : i + h, j : j + w], weight[:, :, i, j], optimize=True)
        for i in range(r)
        for j in range(c)
    )
    result: Array = total + bias[:, None, None]
    return result


def conv_backward(d_out: Array, X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The gradients of a convolution: for its input, its weight and its bias."""
    h, w = d_out.shape[2:]
    d_in, d_weight = np.zeros_like(X), np.zeros_like(weight)
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            window = (slice(None), slice(None), slice(i, i + h), slice(j, j + w))
            d_weight[:, :, i, j] = np.einsum("nohw,nihw->oi", d_out, X[window], optimize=True)
            d_in[window] += np.einsum("nohw,oi->nihw", d_out, weight[:, :, i, j], optimize=True)
    return d_in, d_weight, d_out.sum(axis=(0, 2, 3))


def pool(X: Array) -> Array:
    """Means of 2 x 2 windows; an odd edge is dropped."""
    h, w = X.shape[2] // 2 * 2, X.shape[3] // 2 * 2
    windows = [X[:, :, i:h:2, j:w:2] for i in (0, 1) for j in (0, 1)]
    result: Array = (windows[0] + windows[1] + windows[2] + windows[3]) / 4
    return result


def pool_backward(d_out: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of `pool` for an input of `shape`."""
    d_in = np.zeros(shape, d_out.dtype)
    h, w = d_out.shape[2] * 2, d_out.shape[3] * 2
    for i in (0, 1):
        for j in (0, 1):
            d_in[:, :, i:h:2, j:w:2] = d_out / 4
    return d_in


def forward(X: Array, weights: Weights) -> dict[str, Array]:
    """Every intermediate result; `logits` is the last. `z` are the inputs of the ReLU units."""
    z1 = conv(X, weights["conv1.weight"], weights["conv1.bias"])
    p1 = pool(np.maximum(z1, 0))
    z2 = conv(p1, weights["conv2.weight"], weights["conv2.bias"])
    flat = pool(np.maximum(z2, 0)).reshape(len(X), 800)
    z3 = flat @ weights["fc1.weight"] + weights["fc1.bias"]
    logits = np.maximum(z3, 0) @ weights["fc2.weight"] + weights["fc2.bias"]
    return {"z1": z1, "p1": p1, "z2": z2, "flat": flat, "z3": z3, "logits": logits}


def loss_and_gradients(
    X: Array, y: Array, weights: Weights, masks: dict[str, Array] | None = None
) -> tuple[float, Weights]:
    """The mean cross-entropy and its gradient.

    `masks` says which ReLU units are open, by the name of their input, in place of `z > 0`.
    """
    n = len(X)
    steps = forward(X, weights)
    shifted = steps["logits"] - steps["logits"].max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    opened = masks or {name: steps[name] > 0 for name in ("z1", "z2", "z3")}
    gradients: Weights = {}
    d_logits = np.exp(log_p)
    d_logits[np.arange(n), y] -= 1
    d_logits /= n
    h3 = np.where(opened["z3"], steps["z3"], 0)
    gradients["fc2.weight"], gradients["fc2.bias"] = h3.T @ d_logits, d_logits.sum(axis=0)
    d_z3 = d_logits @ weights["fc2.weight"].T * opened["z3"]
    gradients["fc1.weight"] = steps["flat"].T @ d_z3
    gradients["fc1.bias"] = d_z3.sum(axis=0)
    d_flat = (d_z3 @ weights["fc1.weight"].T).reshape(n, 50, 4, 4)
    d_z2 = pool_backward(d_flat, steps["z2"].shape) * opened["z2"]
    d_p1, gradients["conv2.weight"], gradients["conv2.bias"] = conv_backward(
        d_z2, steps["p1"], weights["conv2.weight"]
    )
    d_z1 = pool_backward(d_p1, steps["z1"].shape) * opened["z1"]
    _, gradients["conv1.weight"], gradients["conv1.bias"] = conv_backward(
        d_z1, X, weights["conv1.weight"]
    )
    return float(-log_p[np.arange(n), y].mean()), {name: gradients[name] for name in weights}


def sgd(
    weights: Weights, minibatches: Sequence[tuple[Array, Array]], rates: Iterable[float]
) -> tuple[list[float], Weights]:
    """The loss of every step, and the weights after the last."""
    losses = []
    trained = {name: values.copy() for name, values in weights.items()}
    for (X, y), lr in zip(minibatches, rates, strict=False):
        loss, gradients = loss_and_gradients(X, y, trained)
        losses.append(loss)
        trained = {name: trained[name] - lr * gradients[name] for name in trained}
    return losses, trained
