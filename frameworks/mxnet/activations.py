"""What each layer of ResNet-18 makes of a batch in Gluon."""

import mxnet as mx
from mxnet import gluon, np

from common.base.arrays import Array, Weights
from frameworks.mxnet.layouts import Shards, Tensor, on_host


def layer_outputs(X: Array, net: gluon.HybridBlock, device: mx.Context) -> Weights:
    """What each layer with weights makes of a batch, by its name; the net evaluates it."""
    found: Weights = {}

    def keep(layer: gluon.Block, inputs: tuple[Tensor, ...], output: Tensor | Shards) -> None:
        (made,) = output if isinstance(output, list) else [output]
        found[layer.prefix.removesuffix(".")] = on_host(made)

    hooks = []

    def listen(layer: gluon.Block) -> None:
        if layer.params.keys():
            hooks.append(layer.register_forward_hook(keep))

    net.hybridize(active=False)  # a compiled net calls no layers
    net.apply(listen)
    net([np.array(X, X.dtype, ctx=device)])
    for hook in hooks:
        hook.detach()
    net.hybridize(static_alloc=True)
    return found
