"""The steps that a run has taken and kept, and what they show of a gradient.

The gradient of a step is seen in how far it has moved each weight. A weight is rounded when it is
stored, and the smaller the rate, the more of the gradient is lost in that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.checks import Run
from common.compare.distances import largest
from common.compare.numpy_nets import Step
from common.data.minibatches import pixels
from common.parallel.shards import shard_bounds
from common.settings.steps import learning_rate


@dataclass(frozen=True)
class Taken:
    """One step that a run has taken: from which weights, on which minibatch, to which weights.

    With `momentum`, also from which velocities to which. Nothing moves before the first step, so
    none is kept of that, nor any after the last one: there they are empty.
    """

    chapter: str
    number: int
    X: Array
    y: Array
    lr: float
    before: Weights
    after: Weights
    loss: float
    shards: Sequence[tuple[int, int]]
    momentum: float = 0.0
    velocity_before: Weights = field(default_factory=dict)
    velocity_after: Weights = field(default_factory=dict)

    def carried(self, name: str) -> Array:
        """What momentum adds to the gradient of a weight: m v."""
        velocity = self.velocity_before.get(name, np.zeros(self.before[name].shape))
        return self.momentum * velocity.astype(np.float64)


def weights_after(run: Run, step: int) -> Weights:
    """The weights that a run had after one of the steps that it kept; 0: the initial ones."""
    last = step == len(run.record.losses)
    return part(run.arrays, "weights/" if last else f"trace/weights/{step}/")


def part(arrays: Mapping[str, Array], prefix: str) -> Weights:
    """The arrays whose names start with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def taken(run: Run, number: int) -> Taken:
    """A step that the run has kept."""
    config, y = run.record.config, run.arrays[f"trace/labels/{number}"]
    return Taken(
        run.record.chapter,
        number,
        pixels(run.arrays[f"trace/images/{number}"], config.dtype),
        y,
        learning_rate(config, number - 1),
        weights_after(run, number - 1),
        weights_after(run, number),
        run.record.losses[number - 1],
        shard_bounds(len(y), run.shards or 1),
        config.options.momentum,
        part(run.arrays, f"trace/momentum/{number - 1}/"),
        part(run.arrays, f"trace/momentum/{number}/"),
    )


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
