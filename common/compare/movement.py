"""What a run shows of a gradient, and how much of it rounding hides.

The gradient of a step is seen in how far it has moved each weight. A weight is rounded when it is
stored, and the smaller the rate, the more of the gradient is lost in that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.distances import largest
from common.compare.numpy_nets import Step
from common.compare.taken import Taken


@dataclass(frozen=True)
class Seen:
    """A gradient as a run shows it. Rounding may have moved each entry by so much: its `blur`.

    What has no blur is known as it is.
    """

    values: Weights
    blur: Weights = field(default_factory=dict)

    def beside(self, expected: Weights) -> Weights:
        """The gradient, each entry as near to the expected one as its blur allows."""
        found = {}
        for name, right in expected.items():
            with np.errstate(invalid="ignore"):
                off = self.values[name] - right
                found[name] = right + np.sign(off) * beyond(off, self.blur.get(name, 0.0))
        return found

    def hidden(self, scales: Mapping[str, float], limit: float) -> int:
        """How many entries have a blur above the limit, which is relative to the `scales`."""
        return sum(int((blur > limit * scales[name]).sum()) for name, blur in self.blur.items())


def movement(step: Taken, names: Mapping[str, object]) -> Seen:
    """How a step has moved some weights, per unit of the rate, less what momentum adds.

    It is the gradient, if all went well. An infinite weight has no movement: NaN.
    """
    values, blur = {}, {}
    for name in names:
        before, after = (each[name].astype(np.float64) for each in (step.before, step.after))
        with np.errstate(over="ignore", invalid="ignore"):
            values[name] = (before - after) / step.lr - step.carried(name)
            most = np.maximum(np.abs(before), np.abs(after))
            blur[name] = np.finfo(step.X.dtype).eps * most / step.lr
    return Seen(values, blur)


def acceleration(step: Taken) -> Weights:
    """What a step has made of velocities, less what momentum adds: the gradient once more."""
    found = {}
    for name, after in step.velocity_after.items():
        with np.errstate(invalid="ignore"):
            found[name] = after.astype(np.float64) - step.carried(name)
    return found


def beyond(off: Array, blur: Array | float) -> Array:
    """The size of differences, less what rounding may have done."""
    return np.maximum(np.abs(off) - blur, 0)


def scales_of(right: Step) -> dict[str, float]:
    """What the distance of each gradient is relative to: see `compare`."""
    return {name: right.added.get(name) or largest(v) or 1.0 for name, v in right.gradients.items()}
