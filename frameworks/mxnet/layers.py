"""What each layer of ResNet-18 makes of a batch in Gluon."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mxnet as mx
from mxnet import gluon, np

from common.base.arrays import Array, Weights
from frameworks.mxnet.resnet import Shards, Tensor

if TYPE_CHECKING:
    from frameworks.mxnet.concise import Replicas


def activations(X: Array, replicas: "Replicas", devices: Sequence[mx.Context]) -> Weights:
    """What each layer with weights makes of a batch on the first device, by its name."""
    found: Weights = {}

    def keep(layer: gluon.Block, inputs: tuple[Tensor, ...], output: Tensor | Shards) -> None:
        (made,) = output if isinstance(output, list) else [output]
        found[layer.prefix.removesuffix(".")] = made.asnumpy()

    hooks = []

    def listen(layer: gluon.Block) -> None:
        if layer.params.keys():
            hooks.append(layer.register_forward_hook(keep))

    replicas.net.hybridize(active=False)  # a compiled net calls no layers
    replicas.net.apply(listen)
    replicas.net([np.array(X, X.dtype, ctx=devices[0])])
    for hook in hooks:
        hook.detach()
    replicas.net.hybridize(static_alloc=True)
    return found
