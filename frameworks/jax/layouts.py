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
"""How a tensor of this shape lies on the devices."""


def canonical(path: Sequence[object]) -> str:
    """The canonical name of what lies at this path in the net."""
    return ".".join(map(str, path)).replace("kernel", "weight")


def from_canonical(name: str, values: Array) -> Array:
    """A weight in Flax's layout: that of a convolution is (rows, columns, in, out) there."""
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
    """The state with these weights; each device has memory of its own."""

    def filled(path: tuple[str, ...], variable: nnx.Variable[Tensor]) -> nnx.Variable[Tensor]:
        values = from_canonical(canonical(path), weights[canonical(path)])
        # On CPUs, device_put would let all devices use the memory of the array.
        copies = jax.make_array_from_callback(
            values.shape, layout(values.shape), lambda i: values[i].copy()
        )
        return variable.replace(copies)

    return nnx.map_state(filled, state)


def copy_of(state: State, index: int) -> Weights:
    """What one of the devices has of a state: copies on the host, by canonical names."""
    found = {}
    for path, variable in nnx.to_flat_state(state):
        name, copy = canonical(path), np.array(variable[...].addressable_shards[index].data)
        found[name] = to_canonical(name, copy)
    return found


def lay_out_each(
    everyones: Sequence[Mapping[str, Array]],
    params: State,
    statistics: State,
    mesh: Mesh,
    split: bool,
) -> tuple[State, State]:
    """The states with the first device's weights, maybe `split`, and each one's own statistics."""
    dtype = everyones[0]["fc.bias"].dtype
    stacks = {
        name: np.stack([each[name] for each in everyones]).astype(dtype)
        for name in everyones[0]
        if not trainable(name)
    }
    same, each_its_own = NamedSharding(mesh, P()), NamedSharding(mesh, P(AXIS))
    laid_out = lay_out(params, everyones[0], lambda shape: part_of(shape, mesh) if split else same)
    return laid_out, lay_out(statistics, stacks, lambda _: each_its_own)
