"""The layouts of Flax and of JAX's devices, and the canonical one of `common/models/nets.py`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import jax
import numpy as np
from flax import nnx
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array, Weights
from common.models.nets import trainable
from frameworks.jax.hosts import whole

AXIS = "device"
"""The axis of the mesh, along which a minibatch is divided into shards."""

State: TypeAlias = nnx.State[str, nnx.Variable[Tensor]]
Layout = Callable[[Sequence[int]], NamedSharding]
"""The sharding of a tensor of this shape."""


def canonical(path: Sequence[object]) -> str:
    """The canonical name of the parameter at this path in the net."""
    return ".".join(map(str, path)).replace("kernel", "weight")


def from_canonical(name: str, values: Array) -> Array:
    """A weight in Flax's layout: (rows, columns, in, out) for a convolution."""
    return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values


def to_canonical(name: str, values: Array) -> Array:
    """The inverse of `from_canonical`; a layer's images (n, rows, columns, channels), likewise."""
    if values.ndim < 4:
        return values
    return values.transpose((3, 2, 0, 1) if name.endswith(".weight") else (0, 3, 1, 2))


def on_host(tensor: Tensor | Array) -> Array:
    """All of a tensor, on the host, also of one that is split over several hosts."""
    return np.asarray(whole(tensor) if isinstance(tensor, Tensor) else tensor)


def part_of(shape: Sequence[int], mesh: Mesh) -> NamedSharding:
    """The layout of a split weight: cut along its longest axis that divides evenly, if any."""
    even = [axis for axis, size in enumerate(shape) if size % mesh.size == 0]
    before = max(even, key=lambda axis: shape[axis], default=None)
    return NamedSharding(mesh, P() if before is None else P(*[None] * before, AXIS))


def lay_out(state: State, weights: Mapping[str, Array], layout: Layout) -> State:
    """The state with these weights, in memory that no other device shares."""

    def filled(path: tuple[str, ...], variable: nnx.Variable[Tensor]) -> nnx.Variable[Tensor]:
        values = from_canonical(canonical(path), weights[canonical(path)])
        # On CPUs, device_put would let all devices use the memory of the array.
        copies = jax.make_array_from_callback(
            values.shape, layout(values.shape), lambda i: values[i].copy()
        )
        return variable.replace(copies)

    return nnx.map_state(filled, state)


def copy_of(state: State, index: int) -> Weights:
    """One device's copy of a state, on the host, by canonical names."""
    weights = {}
    for path, variable in nnx.to_flat_state(state):
        name, copy = canonical(path), np.array(variable[...].addressable_shards[index].data)
        weights[name] = to_canonical(name, copy)
    return weights


def lay_out_each(
    per_device: Sequence[Mapping[str, Array]],
    params: State,
    statistics: State,
    mesh: Mesh,
    split: bool,
) -> tuple[State, State]:
    """The states with the first device's weights, maybe `split`, and per-device statistics."""
    dtype = per_device[0]["fc.bias"].dtype
    stacks = {
        name: np.stack([local[name] for local in per_device]).astype(dtype)
        for name in per_device[0]
        if not trainable(name)
    }
    whole, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P(AXIS))
    laid_out = lay_out(
        params, per_device[0], lambda shape: part_of(shape, mesh) if split else whole
    )
    return laid_out, lay_out(statistics, stacks, lambda _: sharded)
