"""Computes steps of a run again, each from the run's own weights, in NumPy and float64.

The exact result of a step from the run's own weights is known, even if rounding has driven the run
far from others. So each step may be off by the rounding of one step only, late in training too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.checks import Run, allowed
from common.compare.distances import Distance, compare, distance, largest
from common.data.minibatches import pixels
from common.parallel.shards import shard_bounds
from common.records.trace import traced_steps
from common.settings.steps import learning_rate

KINDS = ("update", "statistics", "loss", "logits")
"""What is compared of a step: how it moves each weight, running statistics, its loss; and after the
last one, the logits."""


@dataclass(frozen=True)
class Replay:
    """What a run should have computed, from its own weights, and how far its steps are from it.

    `expected` holds the logits before training and the first gradient, and `scales` what
    distances of some of them are relative to. `steps` holds, by kind, the distances of all steps
    that were kept. `flipped` counts the ReLU units that rounding has decided otherwise than float64
    does.
    """

    expected: Weights
    scales: Mapping[str, float]
    steps: Mapping[str, Sequence[Distance]]
    flipped: int


@dataclass(frozen=True)
class Taken:
    """One step that a run has taken: from which weights, on which minibatch, to which weights."""

    chapter: str
    number: int
    X: Array
    y: Array
    lr: float
    before: Weights
    after: Weights
    loss: float
    shards: Sequence[tuple[int, int]]


def replay(run: Run) -> Replay | None:
    """Computes again what a run has kept; None if its net is too large for that."""
    config, chapter = run.record.config, run.record.chapter
    numbers = traced_steps(config)
    if not numbers:
        return None
    probe, last = pixels(run.arrays["probe/images"], config.dtype), len(run.record.losses)
    before, after = (
        {f"logits/{when}": numpy_nets.logits(chapter, probe, weights_after(run, number))}
        for when, number in (("before", 0), ("after", last))
    )
    expected = before
    steps: dict[str, list[Distance]] = {kind: [] for kind in KINDS}
    scales: dict[str, float] = {}
    most, flipped = allowed(run), 0
    first = part(run.arrays, "gradients/")
    for number in numbers:
        step = taken(run, number)
        right = numpy_nets.step(chapter, step.X, step.y, step.before, step.shards)
        if number == 1:
            grads, _ = with_flips(step, lambda _: first, right, most["gradient"].limit)
            expected |= {f"gradients/{name}": values for name, values in grads.items()}
            scales = {f"gradients/{name}": scale for name, scale in right.added.items()}
        grads, units = with_flips(step, partial(movement, step), right, most["update"].limit)
        flipped += units
        for kind, found in compared(step, right, grads).items():
            steps[kind] += at_step(number, found)
    steps["logits"] = at_step(last, compare(run.arrays, after, "logits/after"))
    return Replay(expected, scales, steps, flipped)


def at_step(number: int, found: Sequence[Distance]) -> list[Distance]:
    """The distances, with the step that they are of."""
    return [replace(each, step=number) for each in found]


def compared(step: Taken, right: numpy_nets.Step, grads: Weights) -> dict[str, list[Distance]]:
    """How far what a step did is from what is right, by kind."""
    kept = {name: step.after[name] for name in right.statistics}
    far, _ = distance(np.array([step.loss]), np.array([right.loss]), right.loss_scale)
    return {
        "update": compare(movement(step, grads), grads, "", right.added),
        "statistics": compare(kept, right.statistics, "") if kept else [],
        "loss": [Distance("loss", far, "the loss")],
    }


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
    )


def movement(step: Taken, grads: Weights) -> Weights:
    """How a step has moved each weight, per unit of the rate: the gradient, if all went well.

    Weights are rounded when they are stored. That alone may change a movement, so this much of its
    difference from the expected `grads` is taken off. An infinite weight has no movement: NaN.
    """
    found = {}
    for name, right in grads.items():
        before, after = (each[name].astype(np.float64) for each in (step.before, step.after))
        with np.errstate(over="ignore", invalid="ignore"):
            off = (before - after) / step.lr - right
            most = np.finfo(step.X.dtype).eps * np.maximum(np.abs(before), np.abs(after)) / step.lr
            found[name] = right + np.sign(off) * np.maximum(np.abs(off) - most, 0)
    return found


def with_flips(
    step: Taken, found: Callable[[Weights], Weights], right: numpy_nets.Step, limit: float
) -> tuple[Weights, int]:
    """The gradient that is expected, and how many ReLU units rounding has decided otherwise.

    `found` gives what is held to an expected gradient. Where it is farther from what is `right`
    than rounding explains, units in doubt are tried, the nearest to zero first and each time twice
    as many, until some explain it. They have flipped, each as a whole. No limit is widened.
    """
    grads = right.gradients

    def far(expected: Weights) -> float:
        return max(each.far for each in compare(found(expected), expected, "", right.added))

    if step.X.dtype == np.float64 or not limit < far(grads) < np.inf:
        return grads, 0
    scales = {name: right.added.get(name) or largest(grads[name]) or 1.0 for name in grads}

    def vector(arrays: Weights) -> Array:
        return np.concatenate([(arrays[name] / scales[name]).ravel() for name in scales])

    off = vector({name: values - grads[name] for name, values in found(grads).items()})
    units = numpy_nets.flips(step.chapter, step.X, step.y, step.before, step.shards)
    gained: list[Weights] = []
    moved, chosen = grads, list[int]()
    while far(moved) > limit and (more := list(islice(units, max(1, len(gained))))):
        gained += more
        chosen = explaining(off, np.stack([vector(each) for each in gained]), limit)
        moved = {name: sum((gained[i][name] for i in chosen), grads[name]) for name in grads}
    return moved, len(chosen)


def explaining(off: Array, parts: Array, limit: float) -> list[int]:
    """The fewest rows of `parts` (m, n) to subtract from `off` (n,) so that it reaches the limit.

    Each time the row is chosen that removes most of the distance. It is subtracted as a whole.
    """
    chosen: list[int] = []
    sizes = (parts**2).sum(axis=1)
    while np.abs(off).max() > limit:
        nearer = 2 * parts @ off - sizes
        nearer[chosen] = 0
        best = int(nearer.argmax())
        if nearer[best] <= 0:
            break
        chosen.append(best)
        off = off - parts[best]
    return chosen
