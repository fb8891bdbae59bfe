"""Steps that a run recorded, recomputed in NumPy and float64 from the run's own weights.

The exact result of a step from given weights is known, however far rounding has driven the run from
others. So each step may be off by the rounding error of one step only, late in training too.

A run records weights, not gradients: a gradient shows in how far a step moved each weight. Weights
are rounded when they are stored, and the smaller the rate, the more of the gradient is lost. And
rounding decides ReLU units whose input is next to zero: these are units in doubt.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from multiprocessing.pool import ThreadPool
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights, part
from common.base.machine import cores
from common.compare import numpy_nets
from common.compare.checks import Run, allowed
from common.compare.distances import Distance, compare, distance, largest
from common.compare.limits import Tolerance
from common.compare.numpy_nets import Bounds
from common.data.minibatches import pixels
from common.models.weights_file import digest
from common.parallel.shards import shard_bounds
from common.records.trace import traced_steps

AT_ONCE: Final = 4
"""Runs that are recomputed at the same time, at most."""

LARGE: Final = 10**10
"""Operations of a step from which on runs are recomputed one by one, for the memory.

Of 99 % of it, one pass took 0.75 GiB for LeNet and 0.37 to 0.72 for ResNet-18, measured.
"""


@dataclass(frozen=True)
class RecordedStep:
    """One step of a run: the weights before and after it, and the minibatch.

    With momentum, also the velocities; those before the first step are zero, and not recorded, nor
    are those after the last one.
    """

    chapter: str
    number: int
    X: Array
    y: Array
    lr: float
    before: Weights
    after: Weights
    loss: float
    shards: Bounds
    momentum: float = 0.0
    velocity_before: Weights = field(default_factory=dict)
    velocity_after: Weights = field(default_factory=dict)

    def carried(self, name: str) -> Array:
        """What momentum adds to the gradient of a weight: m v."""
        velocity = self.velocity_before.get(name, np.zeros(self.before[name].shape))
        return self.momentum * velocity.astype(np.float64)

    def gradients(self, names: Iterable[str]) -> tuple[Weights, Weights]:
        """The gradients that weights moved by, and the most that rounding may add to each entry.

        That is the change over the rate, less what momentum adds; NaN for an infinite weight.
        """
        values, rounding = {}, {}
        for name in names:
            before, after = (each[name].astype(np.float64) for each in (self.before, self.after))
            with np.errstate(over="ignore", invalid="ignore"):
                values[name] = (before - after) / self.lr - self.carried(name)
                most = np.maximum(np.abs(before), np.abs(after))
                rounding[name] = np.finfo(self.X.dtype).eps * most / self.lr
        return values, rounding

    def velocity_gradients(self) -> Weights:
        """The gradients that velocities show: v after, less m v before."""
        with np.errstate(invalid="ignore"):
            return {
                name: after.astype(np.float64) - self.carried(name)
                for name, after in self.velocity_after.items()
            }


@dataclass(frozen=True)
class Recomputed:
    """What a run should have computed, and how far its recorded steps are from it.

    `expected` holds the logits before training and the first gradient, and `scales` what distances
    of some gradients are relative to. `gained` is what the first gradient has from units in doubt
    that the run decided otherwise than float64 does. `steps` has the distances by quantity.
    Of the steps in `hidden`, rounding hides how weights moved: they have no distances of weights.
    `flipped` counts the units in doubt that the run decided otherwise, in all steps.
    """

    expected: Weights
    gained: Weights
    scales: Mapping[str, float]
    steps: Mapping[str, Sequence[Distance]]
    hidden: Sequence[int]
    flipped: int

    def as_in_float64(self, run: Run) -> Run:
        """The run without what units in doubt have added to its first gradient."""
        arrays = {name: run.arrays[name] - values for name, values in self.gained.items()}
        return replace(run, arrays={**run.arrays, **arrays})


def weights_after(run: Run, step: int) -> Weights:
    """The weights of a run after one of the steps that it recorded; 0: the initial ones."""
    last = step == len(run.record.losses)
    return part(run.arrays, "weights/" if last else f"trace/weights/{step}/")


def recorded_step(run: Run, number: int) -> RecordedStep:
    """A step of a run, counted from 1."""
    config, y = run.record.config, run.arrays[f"trace/labels/{number}"]
    return RecordedStep(
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


def recompute(run: Run) -> Recomputed | None:
    """Recomputes the recorded steps of a run; None if its net is too large for that."""
    numbers, limits = traced_steps(run.record.config), allowed(run)
    if not numbers:
        return None
    step, last = recorded_step(run, 1), len(run.record.losses)
    probe = pixels(run.arrays["probe/images"], run.record.config.dtype)
    arrays = {**step.before, "images": step.X, "labels": step.y, "probe": probe}
    before, right = first_results(
        Start(f"{step.chapter} {step.shards} {digest(arrays)}", step, probe)
    )
    first = explained(step, part(run.arrays, "gradients/"), {}, right, limits["gradient"].limit)
    results = [checked(step, right, limits)]
    for step in (recorded_step(run, number) for number in numbers[1:]):
        results.append(checked(step, numpy_step(step), limits))
    steps: dict[str, list[Distance]] = {}
    for by_kind, _ in results:
        for kind, distances in by_kind.items():
            steps.setdefault(kind, []).extend(distances)
    after = numpy_nets.logits(step.chapter, probe, weights_after(run, last))
    ends = compare(run.arrays, {"logits/after": after}, "logits/after")
    steps["logits"] = [replace(each, step=last) for each in ends]
    gained = subtracted(first.gradients, right.gradients) if first.flipped else {}
    return Recomputed(
        expected={"logits/before": before, **named(first.gradients)},
        gained=named(gained),
        scales=named(right.added),
        steps=steps,
        hidden=[n for n, (found, _) in zip(numbers, results, strict=True) if "update" not in found],
        flipped=sum(flipped for _, flipped in results),
    )


@dataclass(frozen=True)
class Start:
    """The first step of a run, and its probe; those with the same `key` are the same."""

    key: str
    step: RecordedStep = field(compare=False)
    probe: Array = field(compare=False)


@lru_cache(maxsize=8)
def first_results(start: Start) -> tuple[Array, numpy_nets.Step]:
    """The logits before training, and the first step: computed once for runs that begin alike."""
    step = start.step
    return numpy_nets.logits(step.chapter, start.probe, step.before), numpy_step(step)


def numpy_step(step: RecordedStep) -> numpy_nets.Step:
    """The exact result of a step."""
    return numpy_nets.step(step.chapter, step.X, step.y, step.before, step.shards)


def checked(
    step: RecordedStep, right: numpy_nets.Step, limits: Mapping[str, Tolerance]
) -> tuple[dict[str, list[Distance]], int]:
    """How far a step is from its exact result, by quantity, and how many units have flipped.

    There is no "update" where rounding hides too much of how weights moved: of fewer entries than
    units in doubt, some units explain anything.
    """
    limit = limits["update"].limit
    moved, rounding = step.gradients(right.gradients)
    answer = explained(step, moved, rounding, right, limit)
    scales = scales_of(right)
    shown = sum(int((rounding[name] <= limit * scale).sum()) for name, scale in scales.items())
    # What sticks out of rounding is wrong, however much else rounding hides.
    lost = shown <= answer.tried and farthest(answer.distances) <= limit
    statistics = {name: step.after[name] for name in right.statistics}
    velocity = step.velocity_gradients()
    far, _ = distance(np.array([step.loss]), np.array([right.loss]), right.loss_scale)
    found = {
        "update": [] if lost else answer.distances,
        "velocity": compare(velocity, answer.gradients, "", right.added) if velocity else [],
        "statistics": compare(statistics, right.statistics, "") if statistics else [],
        "loss": [Distance("loss", far, "the loss")],
    }
    by_kind = {k: [replace(x, step=step.number) for x in each] for k, each in found.items() if each}
    return by_kind, answer.flipped


@dataclass(frozen=True)
class Explained:
    """The gradients that are expected, with units in doubt decided as the run decided them.

    `distances` are those of the run's gradients from them. `flipped` units are decided otherwise
    than by float64, and `tried` ones were looked at.
    """

    gradients: Weights
    distances: Sequence[Distance]
    flipped: int = 0
    tried: int = 0


def explained(
    step: RecordedStep,
    values: Weights,
    rounding: Mapping[str, Array],
    right: numpy_nets.Step,
    limit: float,
) -> Explained:
    """What is expected of a run whose gradients are `values`.

    Rounding may have moved each entry by its `rounding`. Where gradients are farther than the limit
    from what is `right`, units in doubt are tried, the nearest to zero first and each time twice as
    many, until some explain it. Each has flipped as a whole. No limit is widened.
    """
    grads, scales = right.gradients, scales_of(right)

    def vector(arrays: Mapping[str, Array]) -> Array:
        return np.concatenate([(arrays[name] / scale).ravel() for name, scale in scales.items()])

    found = distances_beyond(rounding, values, grads, right)
    if step.X.dtype == np.float64 or not limit < farthest(found) < np.inf:
        return Explained(grads, found)
    off = vector(subtracted(values, grads))
    hidden = vector(rounding) if rounding else np.zeros_like(off)
    units = numpy_nets.flips(step.chapter, step.X, step.y, step.before, step.shards)
    effects: list[Weights] = []
    expected, chosen = grads, list[int]()
    while farthest(found) > limit and (more := list(islice(units, max(1, len(effects))))):
        effects += more
        chosen = explaining(off, hidden, [vector(each) for each in effects], limit)
        expected = {k: sum((effects[i][k] for i in chosen), grad) for k, grad in grads.items()}
        found = distances_beyond(rounding, values, expected, right)
    return Explained(expected, found, len(chosen), len(effects))


def explaining(off: Array, hidden: Array, effects: Sequence[Array], limit: float) -> list[int]:
    """The fewest `effects` (n,) to subtract from `off` (n,) so that it reaches the limit.

    Each time that effect is chosen which removes most of the distance. It is subtracted as a whole.
    Of each entry only what is beyond `hidden` (n,) counts: what an effect adds to an entry that
    rounding hides speaks neither for it nor against it.
    """
    # Most entries may be such that no effect brings them out.
    shown = sum(map(np.abs, effects), np.abs(off)) > hidden
    off, hidden, effects = off[shown], hidden[shown], [each[shown] for each in effects]
    chosen: list[int] = []
    while (left := beyond(off, hidden)).max(initial=0) > limit:
        rest = [(beyond(off - each, hidden) ** 2).sum() for each in effects]
        for index in chosen:
            rest[index] = np.inf
        best = int(np.argmin(rest))
        if rest[best] >= (left**2).sum():
            break
        chosen.append(best)
        off = off - effects[best]
    return chosen


def beyond(off: Array, hidden: Array | float) -> Array:
    """The size of differences, less what rounding may have done."""
    return np.maximum(np.abs(off) - hidden, 0)


def distances_beyond(
    rounding: Mapping[str, Array], values: Weights, expected: Weights, right: numpy_nets.Step
) -> list[Distance]:
    """How far gradients are from the expected ones, beyond what rounding may have done."""
    near = {}
    with np.errstate(invalid="ignore"):
        for name, off in subtracted(values, expected).items():
            near[name] = expected[name] + np.sign(off) * beyond(off, rounding.get(name, 0.0))
    return compare(near, expected, "", right.added)


def scales_of(right: numpy_nets.Step) -> dict[str, float]:
    """What the distance of each gradient is relative to: see `compare`."""
    return {name: right.added.get(name) or largest(v) or 1.0 for name, v in right.gradients.items()}


def subtracted(values: Weights, expected: Weights) -> Weights:
    """The differences of the arrays that are expected."""
    with np.errstate(invalid="ignore"):
        return {name: values[name] - other for name, other in expected.items()}


def farthest(found: Iterable[Distance]) -> float:
    """The largest of some distances."""
    return max(each.far for each in found)


def named(gradients: Mapping[str, Any]) -> dict[str, Any]:
    """The same by the names that they have in a run's arrays."""
    return {f"gradients/{name}": values for name, values in gradients.items()}


def recompute_all(runs: Sequence[Run]) -> dict[str, Recomputed | None]:
    """What each run should have computed, by its name."""
    # Unlike an executor's, these threads do not hold up an interrupt.
    with ThreadPool(threads(runs)) as pool:
        return dict(zip((run.name for run in runs), pool.imap(recompute, runs), strict=True))


def threads(runs: Sequence[Run]) -> int:
    """How many of the runs are recomputed at a time."""
    configs = [run.record.config for run in runs]
    most = max((x.options.operations() * x.batch_size for x in configs), default=0)
    # With NumPy's own threads for each product, these would wait for each other: 20 s on 2 cores,
    # where one after the other takes 18, and where these alone take 11.
    alone = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return min(AT_ONCE, cores()) if alone and most <= LARGE else 1
