"""Arrays on the devices of a mesh, and back."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

from common.base.arrays import Array
from common.parallel.plans import Plan
from common.parallel.replicas import diverged

REPLICA, PART = "replica", "part"
"""The axes of the mesh: groups of devices, and the parts that a group's devices have."""

WHOLE: Final[str] = dtensor.UNSHARDED
"""What DTensor calls the axis along which nothing is cut."""

Spec: TypeAlias = tuple[str, ...]
"""For each axis of a tensor, the axis of the mesh along which it is cut, or `WHOLE`."""


def mesh_of(devices: Sequence[str], plan: Plan) -> dtensor.Mesh:
    """The devices as a table: a row for each group, a column for each part."""
    sizes = [(REPLICA, plan.replicas), (PART, plan.devices)]
    return dtensor.create_mesh(sizes, devices=list(devices))


def placed(values: Array, spec: Spec, mesh: dtensor.Mesh) -> tf.Tensor:
    """An array on the devices; the axes that are cut divide evenly."""
    parts = [tf.constant(values[index]) for index in indices(values.shape, spec, mesh)]
    return dtensor.pack(parts, dtensor.Layout(list(spec), mesh))


def whole(name: str, tensor: tf.Tensor) -> Array:
    """All of a tensor, on the host. Raises RunError if copies of a part differ in bits."""
    layout = dtensor.fetch_layout(tensor)
    found, seen = np.empty(tensor.shape, tensor.dtype.as_numpy_dtype), dict[str, Array]()
    where = indices(tensor.shape, tuple(layout.sharding_specs), layout.mesh)
    for device, (index, part) in enumerate(zip(where, dtensor.unpack(tensor), strict=True)):
        values = part.numpy()
        if seen.setdefault(str(index), values).tobytes() != values.tobytes():
            raise diverged(name, device)
        found[index] = values
    return found


def indices(shape: Sequence[int], spec: Spec, mesh: dtensor.Mesh) -> list[tuple[slice, ...]]:
    """Which part of a tensor each device has."""

    def part(place: dict[str, int], size: int, axis: str) -> slice:
        if axis == WHOLE:
            return slice(None)
        length = size // mesh.dim_size(axis)
        return slice(place[axis] * length, (place[axis] + 1) * length)

    return [
        tuple(part(place, size, axis) for size, axis in zip(shape, spec, strict=True))
        for place in mesh.local_device_locations()
    ]


def padded(values: Array, axis: int, multiple: int) -> Array:
    """An array with zeros at the end of an axis, so that its length is such a multiple."""
    return np.pad(
        values,
        [(0, -size % multiple if each == axis else 0) for each, size in enumerate(values.shape)],
    )
