"""Layouts of native strategies that are one program: which tensors are sharded, and how.

Compilers take only even parts, so tensors are padded with zeros along the axis that is cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.parallel.plans import Plan

REPLICA: Final = "replica"
PART: Final = "part"
"""The axes of the mesh: model-parallel groups, and the devices of each group."""


@dataclass(frozen=True)
class Layout:
    """Which tensors are replicated, and which are sharded.

    It keeps `weights`, and a layer is computed with those `used`. `examples` are divided over axes.
    """

    weights: str
    used: str
    gradients: str
    velocities: str
    examples: tuple[str, ...]


LAYOUTS: Final = {
    # strategy       weights: kept, used  gradients velocities  examples
    "data": Layout("whole", "whole", "whole", "whole", (REPLICA, PART)),
    "zero1": Layout("whole", "whole", "whole", "part", (REPLICA, PART)),
    "zero2": Layout("whole", "whole", "part", "part", (REPLICA, PART)),
    "zero3": Layout("part", "whole", "part", "part", (REPLICA, PART)),
    "tensor": Layout("part", "part", "part", "part", (REPLICA,)),
}
"""All that the strategies differ in, except for the axes along which `axis_of` cuts."""


def axis_of(name: str, plan: Plan) -> int | None:
    """The axis along which a tensor is cut; None if each device has the whole of it."""
    shape = plan.shapes[name]
    if plan.strategy != "tensor":
        return int(np.argmax(shape))
    of_layer, _, kind = name.rpartition(".")
    outputs, inputs = (0, 1) if len(shape) == 4 else (1, 0)
    if of_layer in [column for column, _ in plan.pairs]:
        return outputs if kind == "weight" else 0
    cut = of_layer in [row for _, row in plan.pairs] and kind == "weight"
    return inputs if cut else None


@dataclass(frozen=True)
class Padding:
    """The tensors of a plan, padded so that devices have parts of one size."""

    plan: Plan

    @cached_property
    def axes(self) -> Mapping[str, int | None]:
        """The axis along which each tensor is cut."""
        return {name: axis_of(name, self.plan) for name in self.plan.shapes}

    def padded(self, tensors: Mapping[str, Array]) -> Weights:
        """Tensors with zeros at the end of the axis along which they are cut."""
        cut = {name: axis for name, axis in self.axes.items() if axis is not None}
        return {
            name: padded(values, cut[name], self.plan.devices) if name in cut else values
            for name, values in tensors.items()
        }

    def inner(self, name: str) -> tuple[slice, ...]:
        """The index of a padded tensor without its padding."""
        return tuple(map(slice, self.plan.shapes[name]))


def padded(values: Array, axis: int, multiple: int) -> Array:
    """An array with zeros at the end of an axis, so that its length is such a multiple."""
    return np.pad(
        values,
        [(0, -size % multiple if each == axis else 0) for each, size in enumerate(values.shape)],
    )
