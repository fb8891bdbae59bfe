"""LeNet, layer by layer: forward, and back from layer to layer, in TensorFlow.

Between the two, only the input of each layer is kept; on the way back a layer is computed once more
from its input. So what a device keeps is seen, and what it needs from others can be asked for.
"""

from collections.abc import Mapping, MutableMapping, Sequence

import tensorflow as tf
from tensorflow import Tensor

from frameworks.tensorflow.kernels import avg_pool2d, conv2d, dense, images, relu
from frameworks.tensorflow.scratch import loss
from frameworks.tensorflow.strategies.moves import Params, partial, plus, program, vjp


def of_layer(name: str, params: Mapping[str, Tensor]) -> Params:
    """The weight and the bias of a layer, as far as a device has them."""
    return {key: params[key] for key in (f"{name}.weight", f"{name}.bias") if key in params}


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """What a layer makes of its input, with what follows it up to the next layer."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(conv2d(images(X) if name == "conv1" else X, weight, bias)))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


@program
def forward(
    names: Sequence[str], params: Mapping[str, Tensor], X: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """What consecutive layers make of `X`, and the input of each of them."""
    inputs = []
    for name in names:
        inputs.append(X)
        X = layer(name, X, params)
    return X, inputs


@program
def backward(
    names: Sequence[str], params: Mapping[str, Tensor], inputs: Sequence[Tensor], grad: Tensor
) -> tuple[Tensor, Params]:
    """The gradients of the first input and of the weights, from that of the last output."""
    grads: Params = {}
    for name, X in zip(reversed(names), reversed(inputs), strict=True):
        grad, found = vjp(partial(layer, name), X, of_layer(name, params), grad)
        grads |= found
    return grad, grads


@program
def loss_and_gradient(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """Some examples' part of the mean loss over all `examples`, and the gradient of its logits."""
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = tf.reduce_sum(loss(logits, y)) / examples
    return part, tape.gradient(part, logits)


def add(grads: MutableMapping[str, Tensor], found: Params) -> None:
    """Adds further gradients to those that there are, by name."""
    if grads.keys() >= found.keys():
        found = plus({name: grads[name] for name in found}, found)
    grads.update(found)
