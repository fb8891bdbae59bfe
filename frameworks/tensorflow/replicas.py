"""Functions of the harness for the concise chapter's replicas in TensorFlow."""

from collections.abc import Sequence

import tensorflow as tf

from common.base.arrays import Array, Weights, on_host
from common.parallel.shards import share_of
from frameworks.tensorflow import hosts
from frameworks.tensorflow.collectives import unflatten
from frameworks.tensorflow.concise import Replicas, forward_backward
from frameworks.tensorflow.layouts import from_canonical, to_canonical
from frameworks.tensorflow.wrappers import copies as copies_of, copy_of, on_one


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; a pass moves running statistics."""
    _, grads = forward_backward(X, y, replicas, examples)
    first = unflatten(copies_of(grads, replicas.strategy)[0], replicas.params)
    return {name: to_canonical(name, on_host(grad)) for name, grad in first.items()}


def bias(replicas: Replicas) -> tf.Tensor:
    """A copy of the last layer's bias (10,)."""
    return copies_of(replicas.params["fc.bias"], replicas.strategy)[0] + 0


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device of this process."""
    variables = {**replicas.params, **replicas.statistics}
    here = range(len(copies_of(variables["fc.bias"], replicas.strategy)))
    return [copy_of(variables, index, replicas.strategy) for index in here]


def put(per_device: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    variables = {**replicas.params, **replicas.statistics}
    for index, weights in enumerate(share_of(per_device, hosts.rank(), hosts.processes())):
        for name, variable in on_one(variables, replicas.strategy, index).items():
            variable.assign(from_canonical(name, weights[name]).astype(variable.dtype.name))


def activations(X: Array, replicas: Replicas) -> Weights:
    """The output of each layer with weights, on the first device of this process."""
    net = replicas.net
    first = copies_of(replicas.params["fc.bias"], replicas.strategy)[0].device
    layers = {layer.name: layer.output for layer in net.layers if layer.weights}
    with tf.device(first):
        outputs = tf.keras.Model(net.input, layers)(X, training=False)
    return {name: to_canonical(name, on_host(outputs[name])) for name in layers}
