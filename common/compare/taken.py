"""The steps that a run has taken and kept, and what they show of a gradient.

The gradient of a step is seen in how far it has moved each weight. A weight is rounded when it is
stored, and the smaller the rate, the more of the gradient is lost in that. Rounding also decides
ReLU units in doubt, which may have been decided otherwise than float64 does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from common.base.arrays import Array, Weights, part
from common.compare.checks import Run
from common.compare.distances import Distance, compare, largest
from common.compare.numpy_nets import Step, flips
from common.data.minibatches import pixels
from common.parallel.shards import shard_bounds


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


def taken(run: Run, number: int) -> Taken:
    """A step that the run has kept."""
    config, y = run.record.config, run.arrays[f"trace/labels/{number}"]
    return Taken(
        run.record.chapter,
        number,
        pixels(run.arrays[f"trace/images/{number}"], config.dtype),
        y,
        config.learning_rate(number - 1),
        weights_after(run, number - 1),
        weights_after(run, number),
        run.record.losses[number - 1],
        shard_bounds(len(y), run.shards or 1),
        config.options.momentum,
        part(run.arrays, f"trace/momentum/{number - 1}/"),
        part(run.arrays, f"trace/momentum/{number}/"),
    )


def movement(step: Taken, names: Iterable[str]) -> tuple[Weights, Weights]:
    """The gradient that moved some weights, and how far their rounding may have moved each entry.

    It is how far they moved per unit of the rate, less what momentum adds. An infinite weight has
    no movement: NaN.
    """
    values, blur = {}, {}
    for name in names:
        before, after = (each[name].astype(np.float64) for each in (step.before, step.after))
        with np.errstate(over="ignore", invalid="ignore"):
            values[name] = (before - after) / step.lr - step.carried(name)
            most = np.maximum(np.abs(before), np.abs(after))
            blur[name] = np.finfo(step.X.dtype).eps * most / step.lr
    return values, blur


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


def distances(
    values: Weights, blur: Mapping[str, Array], expected: Weights, right: Step
) -> list[Distance]:
    """How far a gradient is from the expected one, beyond its blur."""
    near = {}
    for name, other in expected.items():
        with np.errstate(invalid="ignore"):
            off = values[name] - other
            near[name] = other + np.sign(off) * beyond(off, blur.get(name, 0.0))
    return compare(near, expected, "", right.added)


def scales_of(right: Step) -> dict[str, float]:
    """What the distance of each gradient is relative to: see `compare`."""
    return {name: right.added.get(name) or largest(v) or 1.0 for name, v in right.gradients.items()}


@dataclass(frozen=True)
class Decided:
    """The gradient that is expected, with the units in doubt decided as a run has decided them.

    `distances` are those of the run's gradient from it. `flipped` counts the units that float64
    decides otherwise, `tried` all that were looked at.
    """

    gradients: Weights
    distances: Sequence[Distance]
    flipped: int = 0
    tried: int = 0


def decided(
    step: Taken, values: Weights, blur: Mapping[str, Array], right: Step, limit: float
) -> Decided:
    """What is expected where a run shows the gradient `values`, which may be off by the limit.

    Rounding may have moved each entry by its `blur`. Where the gradient is farther from what is
    `right` than that, units in doubt are tried, the nearest to zero first and each time twice as
    many, until some explain it. They have flipped, each as a whole. No limit is widened.
    """
    grads = right.gradients
    found = distances(values, blur, grads, right)
    if step.X.dtype == np.float64 or not limit < farthest(found) < np.inf:
        return Decided(grads, found)
    scales = scales_of(right)

    def vector(arrays: Mapping[str, Array]) -> Array:
        return np.concatenate([(arrays[name] / scales[name]).ravel() for name in scales])

    off = vector({name: values[name] - grad for name, grad in grads.items()})
    blurs = vector(blur) if blur else np.zeros_like(off)
    units = flips(step.chapter, step.X, step.y, step.before, step.shards)
    gained: list[Weights] = []
    parts: list[Array] = []
    moved, chosen = grads, list[int]()
    while farthest(found) > limit and (more := list(islice(units, max(1, len(gained))))):
        gained += more
        parts += [vector(each) for each in more]
        chosen = explaining(off, blurs, parts, limit)
        moved = {name: sum((gained[i][name] for i in chosen), grads[name]) for name in grads}
        found = distances(values, blur, moved, right)
    return Decided(moved, found, len(chosen), len(gained))


def farthest(found: Iterable[Distance]) -> float:
    """The largest of some distances."""
    return max(each.far for each in found)


def explaining(off: Array, blur: Array, parts: Sequence[Array], limit: float) -> list[int]:
    """The fewest `parts` (n,) to subtract from `off` (n,) so that it reaches the limit.

    Each time that part is chosen which removes most of the distance. It is subtracted as a whole.
    Of each entry only what is beyond its `blur` (n,) counts: what a part adds to an entry that
    rounding hides speaks neither for it nor against it.
    """
    # Most entries may be such that no part brings them out.
    shown = sum(map(np.abs, parts), np.abs(off)) > blur
    off, blur, parts = off[shown], blur[shown], [each[shown] for each in parts]
    chosen: list[int] = []
    while (left := beyond(off, blur)).max(initial=0) > limit:
        rest = [(beyond(off - each, blur) ** 2).sum() for each in parts]
        for index in chosen:
            rest[index] = np.inf
        best = int(np.argmin(rest))
        if rest[best] >= (left**2).sum():
            break
        chosen.append(best)
        off = off - parts[best]
    return chosen
