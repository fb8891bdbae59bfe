"""Functions of the harness for the concise chapter's replicas in MXNet."""

from collections.abc import Sequence

import mxnet as mx
from mxnet import gluon

from common.base.arrays import Array, Weights, on_host
from common.models.nets import trainable
from frameworks.mxnet.concise import Replicas, forward_backward
from frameworks.mxnet.layouts import Shards, Tensor, from_canonical, local_weights, to_canonical


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; a pass moves running statistics."""
    forward_backward(X, y, replicas, examples)
    replicas.trainer.allreduce_grads()
    params = {k: p for k, p in replicas.net.collect_params().items() if trainable(k)}
    grads = {name: param.grad(replicas.devices[0]) for name, param in params.items()}
    return {name: to_canonical(name, on_host(grad) / examples) for name, grad in grads.items()}


def bias(replicas: Replicas) -> Tensor:
    """A copy of the last layer's bias (10,)."""
    return replicas.net.fc.bias.data(replicas.devices[0]) + 0


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device."""
    params = replicas.net.collect_params()
    return [local_weights(params, device) for device in replicas.devices]


def put(per_device: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    for weights, device in zip(per_device, replicas.devices, strict=True):
        for name, param in replicas.net.collect_params().items():
            values = from_canonical(name, weights[name])
            param.data(device)[:] = mx.np.array(values, values.dtype, ctx=device)


def activations(X: Array, replicas: Replicas) -> Weights:
    """The output of each layer with weights, on the first device."""
    net, outputs, hooks = replicas.net, Weights(), []

    def keep(layer: gluon.Block, inputs: tuple[Tensor, ...], output: Tensor | Shards) -> None:
        (first,) = output if isinstance(output, list) else [output]
        outputs[layer.prefix.removesuffix(".")] = on_host(first)

    def listen(layer: gluon.Block) -> None:
        if layer.params.keys():
            hooks.append(layer.register_forward_hook(keep))

    net.hybridize(active=False)  # a compiled net calls no layers
    net.apply(listen)
    net([mx.np.array(X, X.dtype, ctx=replicas.devices[0])])
    for hook in hooks:
        hook.detach()
    net.hybridize(static_alloc=True)
    return outputs
