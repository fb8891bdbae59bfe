"""Cuts tensors into the parts that layouts give to devices, and puts them together again."""

from collections.abc import Mapping, Sequence

import numpy as np

from common.base.arrays import Array, Weights
from common.models.nets import Shapes
from common.parallel.layouts import Layout, Layouts, Part
from common.parallel.replicas import diverged


def parts_of(tensors: Mapping[str, Array], layouts: Layouts, device: int) -> Weights:
    """What a device has of each tensor."""
    parts = {name: layouts[name][device] for name in tensors}
    return {name: part.of(tensors[name]) for name, part in parts.items() if part is not None}


def whole(held: Sequence[Mapping[str, Array]], layouts: Layouts, shapes: Shapes) -> Weights:
    """The whole tensors, from what each device has of them.

    Raises RunError if two devices have the same part of a tensor, but not the same bits.
    """
    return {
        name: _whole(name, layout, [each.get(name) for each in held], shapes[name])
        for name, layout in layouts.items()
    }


def _whole(
    name: str, layout: Layout, held: Sequence[Array | None], shape: tuple[int, ...]
) -> Array:
    """One of them."""
    found: dict[Part, Array] = {}
    for device, (part, values) in enumerate(zip(layout, held, strict=True)):
        if part is None or values is None:
            continue
        if found.setdefault(part, values).tobytes() != values.tobytes():
            raise diverged(name, device)
    made = np.empty(shape, next(iter(found.values())).dtype)
    for part, values in found.items():
        part.of(made)[...] = values
    return made
