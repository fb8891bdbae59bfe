"""Residual blocks against `Residual` of the book's package, `d2l`: same weights, in float64.

For TensorFlow and JAX the package has no net of the concise chapter, but its blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import book
import numpy as np
import pytest
from book import apart
from concise_steps import far

from common.base.arrays import Array, Weights
from common.models.nets import trainable

CHANNELS = 4
KERAS = {
    "conv.weight": "kernel",
    "conv.bias": "bias",
    "bn.weight": "gamma",
    "bn.bias": "beta",
    "bn.running_mean": "moving_mean",
    "bn.running_var": "moving_variance",
}
FLAX = {
    "conv.weight": "kernel",
    "conv.bias": "bias",
    "bn.weight": "scale",
    "bn.bias": "bias",
    "bn.running_mean": "mean",
    "bn.running_var": "var",
}


def path(name: str, names: Mapping[str, str]) -> tuple[str, str]:
    """The layer that has a weight, and what the layer calls it."""
    layer, part = name.split(".")
    return layer, names[f"{layer[:-1]}.{part}"]


def drawn(shapes: Mapping[str, Sequence[int]]) -> Weights:
    """Weights and running statistics of these shapes, of which none is 0 or 1."""
    random = np.random.RandomState(0)
    weights = {name: random.standard_normal(shapes[name]) for name in sorted(shapes)}
    return {k: 0.5 + v**2 if k.endswith("running_var") else v for k, v in weights.items()}


def images(side: int, channels: int = CHANNELS) -> Array:
    """Three images (3, side, side, channels) of noise."""
    return np.random.RandomState(side).standard_normal((3, side, side, channels))


def in_tensorflow(d2l: Any, side: int, stride: int, training: bool) -> tuple[Weights, Weights]:
    """Output of our block and of the package's, and the gradients of a sum over it."""
    tf: Any = import_module("tensorflow")
    resnet: Any = import_module("frameworks.tensorflow.resnet")
    X, out = tf.constant(images(side)), stride * CHANNELS
    with book.keras_in_float64():
        theirs = d2l.Residual(out, use_1x1conv=stride > 1, strides=stride)
        theirs(X)  # now it has variables
    theirs.bn1.epsilon = theirs.bn2.epsilon = 1e-5  # Keras's own is 1e-3
    inputs = tf.keras.Input(X.shape[1:], dtype="float64")
    block = resnet.Layers("per-device", "float64").residual(inputs, "block", out)
    ours = tf.keras.Model(inputs, block)
    variables = {k.removeprefix("block."): v for k, v in resnet.named_variables(ours).items()}
    weights = drawn({name: variable.shape for name, variable in variables.items()})

    def computed(block: Any, variables: Mapping[str, Any]) -> Weights:
        for name, values in weights.items():
            variables[name].assign(values)
        params = {name: variable for name, variable in variables.items() if trainable(name)}
        with tf.GradientTape() as tape:
            tape.watch(X)
            Y = block(X, training=training)
            total = tf.reduce_sum(Y * images(Y.shape[1], out))
        grads = tape.gradient(total, params | {"images": X})
        return {"output": Y.numpy(), **{name: grad.numpy() for name, grad in grads.items()}}

    def their_variable(name: str) -> Any:
        layer, part = path(name, KERAS)
        return getattr(getattr(theirs, layer), part).value

    return computed(ours, variables), computed(theirs, {k: their_variable(k) for k in weights})


def in_jax(d2l: Any, side: int, stride: int, training: bool) -> tuple[Weights, Weights]:
    """Output of our block and of the package's, and the gradients of a sum over it."""
    jax: Any = import_module("jax")
    nnx: Any = import_module("flax.nnx")
    resnet: Any = import_module("frameworks.jax.resnet")
    layouts: Any = import_module("frameworks.jax.layouts")
    X, out = jax.numpy.array(images(side)), stride * CHANNELS
    graph, state = nnx.split(resnet.Residual(CHANNELS, out, None, nnx.Rngs(0)))
    shapes = {layouts.canonical(path): v.shape for path, v in nnx.to_flat_state(state)}
    weights = {name: jax.numpy.array(values) for name, values in drawn(shapes).items()}
    block = d2l.Residual(out, stride > 1, (stride, stride), training)

    def ours(weights: Any) -> Any:
        filled = nnx.map_state(lambda path, v: v.replace(weights[layouts.canonical(path)]), state)
        return nnx.merge(graph, filled)(weights["images"], np.ones(len(X)) if training else None)

    def theirs(weights: Any) -> Any:
        trees: dict[str, Any] = {"params": {}, "batch_stats": {}}
        for name in shapes:
            layer, part = path(name, FLAX)
            kind = "params" if trainable(name) else "batch_stats"
            trees[kind].setdefault(layer, {})[part] = weights[name]
        return block.apply(trees, weights["images"], mutable=["batch_stats"])[0]

    def computed(block: Callable[[Any], Any]) -> Weights:
        def total(params: Any) -> Any:
            Y = block(weights | params)
            return (Y * images(Y.shape[1], out)).sum(), Y

        params = {name: values for name, values in weights.items() if trainable(name)}
        grads, Y = jax.jit(jax.grad(total, has_aux=True))(params | {"images": X})
        return {"output": np.array(Y), **{name: np.array(grad) for name, grad in grads.items()}}

    return computed(ours), computed(theirs)


Computed = Callable[[Any, int, int, bool], tuple[Weights, Weights]]


# Its "same" pads one side alone where the stride is 2 and sides are even: these are odd.
@pytest.mark.parametrize(
    "computed",
    [
        pytest.param(in_tensorflow, marks=pytest.mark.only("tensorflow")),
        pytest.param(in_jax, marks=pytest.mark.only("jax")),
    ],
)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("side", "stride"), [(8, 1), (7, 2)])
def test_block_is_that_of_the_package(
    d2l: Any, computed: Computed, side: int, stride: int, training: bool
) -> None:
    found, expected = computed(d2l, side, stride, training)
    assert far(found.pop("output"), expected.pop("output")) < 1e-12
    assert apart(found, expected) < 1e-12
