"""What each device has, in each way to split: all that the ways differ in."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from common.parallel.plans import Plan
from frameworks.tensorflow.native.placing import PART, REPLICA, WHOLE


@dataclass(frozen=True)
class Layout:
    """What each device has: the whole of each tensor, or a part.

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
    "tensor": Layout("part", "part", "part", "part", (REPLICA, WHOLE)),
}
"""All that the ways to split differ in, except for the axes along which `axis_of` cuts."""


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
