"""LeNet, layer by layer: forward, and back from layer to layer, in MXNet.

Between the two, only the input of each layer is kept; on the way back a layer is computed once more
from its input. So what a device keeps is seen, and what it needs from others can be asked for.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial, wraps

import mxnet as mx
from mxnet import autograd, np

from frameworks.mxnet.kernels import avg_pool2d, conv2d, dense, padded, relu
from frameworks.mxnet.scratch import loss
from frameworks.mxnet.strategies.moves import Params, Tensor, plus, vjp

Layer = Callable[[str, Tensor, Mapping[str, Tensor]], Tensor]


def of_layer(name: str, params: Mapping[str, Tensor]) -> Params:
    """The weight and the bias of a layer, as far as a device has them."""
    return {key: params[key] for key in (f"{name}.weight", f"{name}.bias") if key in params}


def of_none_too(function: Layer) -> Layer:
    """A function that can be given no examples, too: MXNet cannot convolve nothing."""

    @wraps(function)
    def of_any(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
        if len(X):
            return function(name, X, params)
        return function(name, np.zeros((1, *X.shape[1:]), X.dtype, ctx=X.ctx), params)[:0]

    return of_any


def padded_conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`conv2d` of `X` with as many more channels of zeros as it wants."""
    given = X.shape[1]
    X = padded(X, len(X), 3 if given <= 3 else -(-given // 8) * 8, *X.shape[2:])
    return conv2d(X, weight, bias)


def first(Y: Tensor, channels: int) -> Tensor:
    """The first channels of `Y` (n, channels, rows, columns): devices keep and send no others.

    `Y[:, :channels]` fails: oneDNN, which computes it, cuts channels at multiples of 8 alone.
    """
    cut = mx.nd.slice_axis(Y.as_nd_ndarray(), axis=1, begin=0, end=channels)
    return cut.as_np_ndarray()


@of_none_too
def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """What a layer makes of its input, with what follows it up to the next layer."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return first(avg_pool2d(relu(padded_conv2d(X, weight, bias))), len(bias))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


def forward(
    names: Sequence[str], params: Mapping[str, Tensor], X: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """What consecutive layers make of `X`, and the input of each of them."""
    inputs = []
    for name in names:
        inputs.append(X)
        X = layer(name, X, params)
    return X, inputs


def backward(
    names: Sequence[str], params: Mapping[str, Tensor], inputs: Sequence[Tensor], grad: Tensor
) -> tuple[Tensor, Params]:
    """The gradients of the first input and of the weights, from that of the last output."""
    grads: Params = {}
    for name, X in zip(reversed(names), reversed(inputs), strict=True):
        grad, found = vjp(partial(layer, name), X, of_layer(name, params), grad)
        grads |= found
    return grad, grads


def loss_and_gradient(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """Some examples' part of the mean loss over all `examples`, and the gradient of its logits."""
    if len(logits) == 0:  # MXNet cannot add up nothing
        return np.zeros((), logits.dtype, ctx=logits.ctx), logits
    logits = logits.detach()
    logits.attach_grad()
    with autograd.record():
        part = loss(logits, y).sum() / examples
    part.backward()
    return part.detach(), logits.grad


def add(grads: MutableMapping[str, Tensor], found: Params) -> None:
    """Adds further gradients to those that there are, by name."""
    if grads.keys() >= found.keys():
        found = plus({name: grads[name] for name in found}, found)
    grads.update(found)
