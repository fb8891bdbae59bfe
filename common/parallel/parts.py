"""A device's parts of tensors by a plan, and the tensors from all devices' parts."""

from collections.abc import Mapping, Sequence

import numpy as np

from common.base.arrays import Array, Weights
from common.models.nets import Shapes
from common.parallel.plans import Layouts, Part
from common.parallel.replicas import diverged


def parts_of(tensors: Mapping[str, Array], layouts: Layouts, device: int) -> Weights:
    """A device's part of each tensor of which it has one."""
    parts = {name: layouts[name][device] for name in tensors}
    return {name: part.of(tensors[name]) for name, part in parts.items() if part is not None}


def whole(held: Sequence[Mapping[str, Array]], layouts: Layouts, shapes: Shapes) -> Weights:
    """The whole tensors from devices' parts. Raises RunError where copies of a part differ.

    Names may begin with the kind of a state, as in `momentum/NAME`.
    """
    tensors: Weights = {}
    for name, layout in layouts.items():
        parts: dict[Part, Array] = {}
        for device, part in enumerate(layout):
            if part is not None:
                values = held[device][name]
                if parts.setdefault(part, values).tobytes() != values.tobytes():
                    raise diverged(name, device)
        shape = shapes[name.rpartition("/")[2]]
        tensors[name] = np.empty(shape, next(iter(parts.values())).dtype)
        for part, values in parts.items():
            view = tensors[name].reshape(-1) if part.axis is None else tensors[name]
            view[part.index] = values
    return tensors
