"""The steps that a run has taken and kept: from which weights, on what, to which weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.checks import Run
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
