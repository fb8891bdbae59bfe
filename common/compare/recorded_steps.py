"""Steps that a run recorded, recomputed in NumPy and float64 from the run's own weights.

A gradient shows in how far a step moved each weight. Weights are rounded when they are stored: the
smaller the rate, the more of the gradient is lost. And rounding decides ReLU units whose input is
next to zero: these are units in doubt.

A vector (n,) has the entries of all gradients, one gradient after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from multiprocessing.pool import ThreadPool
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights, part
from common.base.machine import cores
from common.compare import numpy_nets
from common.compare.distances import Distance, compare, distance, largest
from common.compare.limits import LIMITS
from common.compare.numpy_pass import MOMENTUM, Unit
from common.compare.runs import RecordedRun
from common.data.dataset import Bytes
from common.models.weights_file import digest
from common.records.trace import checked_images, traced_steps

BETAS: Final = {"momentum": 0.9, "variance": 0.999}
TINY: Final = 1e-8
"""Of Adam: how fast it forgets what it keeps, and what is added to the root of the variance."""

AT_ONCE: Final = 4
LARGE: Final = 10**10
"""Operations of a step from which on one run at a time is recomputed: 0.75 GiB."""


@dataclass(frozen=True)
class Recomputed:
    """What a run should have computed, and how far its recorded steps are from it.

    `expected` holds the logits before training and the first gradient, `gained` what that has from
    units in doubt that the run decided otherwise than float64. `steps` has the distances by
    quantity. In `hidden` steps, rounding hides how all weights moved, or those of some tensor.
    `mispredicted` tells of a test image that a run recorded another class for than that of NumPy's
    logits.
    """

    expected: Weights = field(default_factory=dict)
    gained: Weights = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    steps: Mapping[str, Sequence[Distance]] = field(default_factory=dict)
    hidden: Sequence[int] = ()
    mispredicted: str = ""

    def as_in_float64(self, run: RecordedRun) -> Weights:
        """The arrays of the run, its first gradient without the units in doubt."""
        gradients = {name: run.arrays[name] - values for name, values in self.gained.items()}
        return {**run.arrays, **gradients}


def recompute_all(runs: Sequence[RecordedRun]) -> dict[RecordedRun, Recomputed | None]:
    """Recomputes the recorded steps of runs, some at a time."""
    configs = [run.record.config for run in runs]
    most = max((x.options.operations() * x.batch_size for x in configs), default=0)
    # Unlike an executor's, these threads do not hold up an interrupt.
    with ThreadPool(min(AT_ONCE, cores()) if most <= LARGE else 1) as pool:
        alike = {beginning(run): run for run in runs if traced_steps(run.record.config)}
        begun = dict(zip(alike, pool.imap(begin, alike.values()), strict=True))
        recomputed = pool.imap(lambda run: recompute(run, begun.get(beginning(run))), runs)
        return dict(zip(runs, recomputed, strict=True))


def beginning(run: RecordedRun) -> str:
    """The same for runs that compute the same logits before training, and the same first step."""
    names = ("trace/weights/0/", "trace/images/1", "trace/labels/1", "probe/images")
    inputs = {name: values for name, values in run.arrays.items() if name.startswith(names)}
    return f"{run.record.config.dtype} {run.shards} {run.routing} {digest(inputs)}"


def begin(run: RecordedRun) -> tuple[Array, numpy_nets.Step]:
    return probe_logits(run, 0), RecordedStep(run, 1).right


def recompute(
    run: RecordedRun, begun: tuple[Array, numpy_nets.Step] | None = None
) -> Recomputed | None:
    """Recomputes the recorded steps of a run; None if there are none."""
    numbers = traced_steps(run.record.config)
    if not numbers:
        return None
    before, right = begun or begin(run)
    first = RecordedStep(run, numbers[0], right)
    gradients = first.vector(part(run.arrays, "gradients/"))
    limit = run.limits["gradient"]
    _, gained, _ = first.explain(gradients, np.zeros_like(gradients), limit)
    gained = gained * first.scale
    last = len(run.record.losses)
    tested = checked_logits(run)
    ours = {name: run.arrays[name] for name in ("logits/after", "test/logits")}
    ours["test/logits"] = ours["test/logits"][checked_images(run.record.config)]
    after = {"logits/after": probe_logits(run, last), "test/logits": tested[last]}
    steps = {"logits": [replace(end, step=last) for end in compare(ours, after, "")]}
    hidden = []
    for step in chain([first], (RecordedStep(run, number) for number in numbers[1:])):
        distances, lost = step.compare(run.limits)
        for quantity, worst in distances.items():
            steps.setdefault(quantity, []).extend(replace(x, step=step.number) for x in worst)
        if lost:
            hidden.append(step.number)
    return Recomputed(
        expected={"logits/before": before, **named(first.by_name(first.exact + gained))},
        gained=named(first.by_name(gained)),
        scales=named(first.right.scales),
        steps=steps,
        hidden=hidden,
        mispredicted=wrong_prediction(run, tested),
    )


# What follows is not the code by which runs have their pixels and shards.
def pixels(images: Bytes, dtype: str) -> Array:
    """Images (n, 28, 28) of bytes as (n, 1, 28, 28) in 0..1; texts (n, s) as they are."""
    if images.ndim == 2:
        return images.astype(np.int64)
    scaled: Array = np.divide(images.reshape(-1, 1, 28, 28), 255, dtype=dtype)
    return scaled


def consecutive(examples: int, shards: int) -> list[tuple[int, int]]:
    """Where consecutive shards begin and end, the first of them longer by one if it is uneven."""
    size, longer = examples // shards, examples % shards
    starts = [size * i + min(i, longer) for i in range(shards + 1)]
    return list(pairwise(starts))


def weights_after(run: RecordedRun, step: int) -> Weights:
    last = step == len(run.record.losses)
    return part(run.arrays, "weights/" if last else f"trace/weights/{step}/")


def probe_logits(run: RecordedRun, step: int) -> Array:
    probe = pixels(run.arrays["probe/images"], run.record.config.dtype)
    return numpy_nets.logits(run.net, probe, weights_after(run, step))


def checked_logits(run: RecordedRun) -> dict[int, Array]:
    """The logits of the checked test images after epochs, by the step, if that is kept."""
    config, kept = run.record.config, {*traced_steps(run.record.config), len(run.record.losses)}
    X = pixels(run.arrays["test/images"], config.dtype)
    ends = (config.steps_before(epoch) for epoch in range(1, config.number_of_epochs() + 1))
    due = (step for step in ends if step in kept)
    return {step: numpy_nets.logits(run.net, X, weights_after(run, step)) for step in due}


def wrong_prediction(run: RecordedRun, tested: Mapping[int, Array]) -> str:
    """Of which test image a class was predicted that has not the largest logit; or nothing.

    `tested` has logits by step; rounding may decide between equal ones.
    """
    config, places = run.record.config, checked_images(run.record.config)
    limit = run.limits["logits"]
    for epoch, classes in enumerate(run.arrays["test/predictions"][:, places], 1):
        if (step := config.steps_before(epoch)) in tested:
            logits = tested[step]
            with np.errstate(invalid="ignore"):
                near = logits >= logits.max(axis=-1, keepdims=True) - 2 * limit * largest(logits)
            right = np.take_along_axis(near, classes[..., None].astype(np.int64), -1)[..., 0]
            if not right.all():
                i = tuple(np.argwhere(~right)[0])
                where = f"test example {places[i[0]] + 1} after epoch {epoch}"
                return f"the class of {where} is {classes[i]}, by its weights {logits[i].argmax()}"
    return ""


def named(gradients: Mapping[str, Any]) -> dict[str, Any]:
    """By the names that gradients have in a run's arrays."""
    return {f"gradients/{name}": values for name, values in gradients.items()}


class RecordedStep:
    """One step of a run, counted from 1, and, as `right`, its exact result.

    `exact` (n,) has its gradients, `scale` (n,) what their distances are relative to, `summing`
    (n,) the epsilons by which their sums may be off besides.
    """

    def __init__(self, run: RecordedRun, number: int, right: numpy_nets.Step | None = None) -> None:
        config, arrays = run.record.config, run.arrays
        self.number, self.dtype = number, config.dtype
        self.loss = run.record.losses[number - 1]
        self.lr = run.learning_rate(number)
        self.momentum = config.options.momentum
        self.clip = config.options.clip
        self.before, self.after = (weights_after(run, step) for step in (number - 1, number))
        # Empty before the first step and, except with Adam, after the last one.
        self.moments = [
            {kind: part(arrays, f"trace/{kind}/{step}/") for kind in BETAS}
            for step in (number - 1, number)
        ]
        self.velocity_before, self.velocity_after = (kept["momentum"] for kept in self.moments)
        self.own_before, self.own_after = (
            part(arrays, f"trace/statistics/{step}/") for step in (number - 1, number)
        )
        if number == 1:
            starts = ((x, self.before[x], len(rows)) for x, rows in self.own_after.items())
            self.own_before = {name: np.stack([start] * k) for name, start, k in starts}
        elif (number - 1) % config.steps_of_whole() == 0:  # an evaluation may share the first's
            self.own_before = {}
        if config.settings().get("wrapper") == "dp":  # which has the first device's only
            self.own_before = {}
        self.shards = run.shards
        X = pixels(arrays[f"trace/images/{number}"], config.dtype)
        y = arrays[f"trace/labels/{number}"].astype(np.int64)
        y = np.where(y == 255, -1, y)
        bounds = consecutive(len(y), run.shards or 1)
        self.minibatch = run.net, X, y, self.before, bounds
        self.right = right or numpy_nets.step(*self.minibatch)
        self.exact = self.vector(self.right.gradients)
        self.scale = self.repeated(self.right.scales)
        self.summing = LIMITS[run.record.config.net].per_term * self.repeated(self.right.terms)

    def vector(self, arrays: Mapping[str, Array]) -> Array:
        return np.concatenate([arrays[name].ravel() for name in self.right.gradients], dtype=float)

    def repeated(self, figures: Mapping[str, float]) -> Array:
        """The figure of each tensor, 0 without one, for each entry of it."""
        grads = self.right.gradients
        return np.concatenate([np.full(grads[x].size, figures.get(x, 0.0)) for x in grads])

    def by_name(self, vector: Array) -> Weights:
        arrays, start = {}, 0
        for name, like in self.right.gradients.items():
            arrays[name] = vector[start : start + like.size].reshape(like.shape)
            start += like.size
        return arrays

    def compare(self, limits: Mapping[str, float]) -> tuple[dict[str, list[Distance]], bool]:
        """How far the step is from its exact result, and whether it is hidden.

        There is no "update" where rounding leaves fewer entries than units in doubt: some units
        would explain anything. Also hidden is a step in which rounding may change each entry of a
        tensor by more than its largest gradient.
        """
        ours, exact = np.array([self.loss]), np.array([self.right.loss])
        far, _ = distance(ours, exact, self.right.loss_scale)
        distances = {"loss": [Distance("loss", far, "the loss")]}
        moved, rounding = movement(self.vector(self.before), self.vector(self.after), self.lr)
        eps, limit = np.finfo(self.dtype).eps, limits["update"]
        if "variance" in limits:
            return distances | self.compare_adam(moved, eps * rounding), False
        carried: Array | float = 0.0
        if self.velocity_before:
            carried = self.momentum * self.vector(self.velocity_before)
        hidden = eps * (rounding / self.scale + self.summing)
        shown, most, kind = moved - carried, hidden, "update"
        if self.velocity_after:  # it shows the gradient without the rounding of stored weights
            shown, most = self.vector(self.velocity_after) - carried, eps * self.summing
            kind = "velocity"
        left, gained, tried = self.explain(shown, most, limits[kind])
        if kind == "velocity":
            distances[kind] = self.distances(left)
            left = beyond((moved - carried - self.exact) / self.scale - gained, hidden)
        if (hidden <= limit).sum() > tried or left.max() > limit:
            distances["update"] = self.distances(left)
        if self.right.seen:
            distances["statistics"] = self.compare_statistics()
        lost = any(values.min() > 1 for values in self.by_name(hidden).values())
        return distances, lost or "update" not in distances

    def compare_adam(self, moved: Array, hidden: Array) -> dict[str, list[Distance]]:
        """By what the moments show: the first the gradient, the second its square.

        The update follows from both: a gradient that is 0 but for rounding, as that of the keys'
        biases, would move a weight as far as any other.
        """
        norm = float(np.sqrt((self.exact**2).sum()))
        exact = self.exact * (self.clip / norm) if self.clip and norm > self.clip else self.exact
        scale = self.scale * np.abs(exact).max() / np.abs(self.exact).max()
        distances, unbiased, eps = {}, {}, np.finfo(self.dtype).eps
        for (kind, beta), power in zip(BETAS.items(), (1, 2), strict=True):
            old, new = (
                self.vector(kept[kind]) if kept[kind] else np.zeros_like(exact)
                for kept in self.moments
            )
            shown, size = (new - beta * old) / (1 - beta), scale**power
            rounding = eps * np.maximum(np.abs(old), np.abs(new)) / (1 - beta)
            distances[kind] = self.distances(beyond((shown - exact**power) / size, rounding / size))
            unbiased[kind] = new / (1 - beta**self.number)
        update = unbiased["momentum"] / (np.sqrt(unbiased["variance"]) + TINY)
        return {**distances, "update": self.distances(beyond(moved - update, hidden))}

    def compare_statistics(self) -> list[Distance]:
        """Of each device's running statistics, as far as it is known what is due."""
        ours, due = Weights(), Weights()
        for name, seen in self.right.seen.items():
            own = {name: (self.before[name], self.after[name], 0)}
            starts, rows = self.own_before.get(name, ()), self.own_after.get(name, ())
            # A run may have been resumed on fewer devices, or more.
            for device in range(1, len(rows) if len(rows) == len(starts) else 0):
                where = f"{name} on device {device}"
                own[where] = starts[device], rows[device], device if self.shards else 0
            for where, (old, new, shard) in own.items():
                ours[where], due[where] = new, old
                if shard < len(seen):  # it has examples
                    due[where] = numpy_nets.moved(old.astype(float), seen[shard])
                    ours[where] = self.near(name, shard, new, due[where])
        return compare(ours, due, "")

    def near(self, name: str, shard: int, ours: Array, due: Array) -> Array:
        """Running statistics (channels,), nearer to what is due by what rounding may have done.

        The sum of n pixels, added one after another, is off by up to n / 2 epsilons of their size,
        as `limits.PER_TERM` explains.
        """
        layer, kind = name.rsplit(".running_", 1)
        keys = f"{layer}.running_mean", f"{layer}.running_var"
        mean, variance = (self.right.seen[key][shard] for key in keys)
        size = np.sqrt(mean**2 + variance) if kind == "mean" else variance
        _, X, _, _, bounds = self.minibatch
        first, end = bounds[shard]
        pixels = self.right.terms[f"{layer}.bias"] // len(X) * (end - first)
        rounding = np.finfo(self.dtype).eps * (MOMENTUM * pixels / 2) * size
        nearer: Array = due + np.sign(ours - due) * beyond(ours - due, rounding)
        return nearer

    def distances(self, left: Array) -> list[Distance]:
        arrays = self.by_name(left)
        zeros = {name: np.zeros_like(values) for name, values in arrays.items()}
        return compare(arrays, zeros, "", dict.fromkeys(arrays, 1.0))

    def explain(self, gradients: Array, hidden: Array, limit: float) -> tuple[Array, Array, int]:
        """How far gradients (n,) are off, what flipped units add, and how many units were tried.

        Rounding may have moved each entry by `hidden` (n,), relative to its scale. Where gradients
        are too far off, units in doubt are tried, each time twice as many, until some explain it.
        """
        off = (gradients - self.exact) / self.scale
        left, gained = beyond(off, hidden), np.zeros_like(off)
        if self.dtype == "float64" or not limit < left.max() < np.inf:
            return left, gained, 0
        doubt = numpy_nets.Doubt(*self.minibatch)

        def together(units: Sequence[Unit]) -> Array:
            return self.vector(doubt.gain(units)) / self.scale

        tried: dict[Unit, Array] = {}
        units = iter(doubt.units)
        while limit < left.max() and (more := [*islice(units, max(1, len(tried)))]):
            tried |= {unit: together([unit]) for unit in more}
            _, gained = explaining(off, hidden, tried, limit, together)
            left = beyond(off - gained, hidden)
        return left, gained, len(tried)


def movement(before: Array, after: Array, lr: float) -> tuple[Array, Array]:
    """The gradients (n,) that moved weights (n,), and the most that one epsilon adds to each."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (before - after) / lr, np.maximum(np.abs(before), np.abs(after)) / lr


def beyond(off: Array, hidden: Array | float) -> Array:
    """The size of differences, less what rounding may have done; infinite for NaN."""
    with np.errstate(invalid="ignore"):
        left = np.maximum(np.abs(off) - hidden, 0)
    return np.where(np.isnan(left), np.inf, left)


def explaining(
    off: Array,
    hidden: Array,
    tried: Mapping[Unit, Array],
    limit: float,
    together: Callable[[Sequence[Unit]], Array],
) -> tuple[list[Unit], Array]:
    """The fewest units that bring `off` (n,) to the limit, and what they add (n,) together.

    `tried` has what each adds by itself. Each time that unit is chosen whose effect removes most of
    the distance beyond `hidden` (n,).
    """
    # Most entries may be such that no effect brings them out.
    shown = sum(map(np.abs, tried.values()), np.abs(off)) > hidden
    most, effects = hidden[shown], {unit: effect[shown] for unit, effect in tried.items()}
    chosen: list[Unit] = []
    gained = np.zeros_like(off)
    rest = off[shown]
    while effects and (left := beyond(rest, most)).max(initial=0) > limit:
        after = {x: (beyond(rest - effect, most) ** 2).sum() for x, effect in effects.items()}
        best = min(after, key=lambda unit: after[unit])
        if after[best] >= (left**2).sum():
            break
        chosen.append(best)
        del effects[best]
        gained = together(chosen) if chosen[1:] else tried[best]
        rest = (off - gained)[shown]
    return chosen, gained
