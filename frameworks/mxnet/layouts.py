"""MXNet's layout of weights, the canonical one of `common/models/nets.py`, and shards."""

from collections.abc import Callable
from typing import TypeAlias

from mxnet import Context, gluon, np

from common.base.arrays import Array, Weights, on_host

Tensor: TypeAlias = np.ndarray
Shards = list[Tensor]
"""The shards of a minibatch, by device."""


def from_canonical(name: str, values: Array) -> Array:
    """A weight in Gluon's layout: (out, in) for a dense layer."""
    return values.T if name == "fc.weight" else values


def to_canonical(name: str, values: Array) -> Array:
    """The inverse of `from_canonical`."""
    return values.T if name == "fc.weight" else values


def local_weights(params: gluon.ParameterDict, device: Context) -> Weights:
    """The weights and running statistics of a device, by canonical names: copies on the host."""
    return {name: to_canonical(name, on_host(param.data(device))) for name, param in params.items()}


def each(layer: Callable[[Tensor], Tensor], shards: Shards) -> Shards:
    """The output of a layer for each shard, on the shard's device."""
    return [layer(X) for X in shards]
