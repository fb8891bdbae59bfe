"""Which mistake explains a wrong sum over devices, update or logits, in words.

A sum over devices of numbers that are known tells whose numbers are in it. A wrong update is
written as a sum of the gradients of single examples: how much each example counts tells what was
lost, or divided by what.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.distances import distance
from common.models.nets import EPSILON, trainable
from common.parallel.shards import shard_bounds
from common.terminal.text import listed

MOST: Final = 8
ROUNDED: Final = 1e-2
"""How near to each other factors are that tell the same mistake."""

BASE: Final = 16
"""If device i has the number 16^i, the digits of a sum tell how often each device is in it."""

Shares = tuple[Fraction, ...]
"""How often each device is in a number; nothing for a number that is no such sum."""


def shares_in(value: float, k: int) -> Shares:
    """How often each of k devices is in a sum of powers of `BASE`, or in a mean."""
    decoded: list[Shares] = []
    for divisor in range(1, k + 1) if np.isfinite(value) else ():
        whole = round(value * divisor)
        digits = [whole // BASE**i % BASE for i in range(k)]
        if 0 <= whole < BASE**k and abs(value * divisor - whole) < 1e-6:
            decoded.append(tuple(Fraction(digit, divisor) for digit in digits))
    plain = [shares for shares in decoded if len({*shares} - {0}) < 2]
    return [*plain, *decoded, ()][0]


def contributions(held: Sequence[Sequence[Shares]], place: str) -> str:
    """What devices have where the sum of all is due; nothing if they have it."""
    phrases = []
    for device, places in enumerate(held):
        wrong = [i for i, shares in enumerate(places) if {*shares} != {1}]
        if wrong:
            where = f" in {place} {listed(wrong[:3])}" if len(wrong) < len(places) else ""
            phrases.append(f"device {device} has {contribution(places[wrong[0]])}{where}")
    return "; ".join(phrases[:3])


def contribution(shares: Shares) -> str:
    """Whose numbers are in a sum."""
    if not shares:
        return "numbers that are no sum of the devices' arrays"
    if len({*shares}) == 1:
        return f"{shares[0]} times the sum"
    terms = [f"{share} x {i}" if share != 1 else i for i, share in enumerate(shares) if share]
    return f"the {'sum' if terms[1:] else 'values'} of {listed(terms)} only"


@dataclass(frozen=True)
class Update:
    """What a step took in place of the gradient: (weight before - weight after) / rate."""

    chapter: str
    X: Array
    y: Array
    weights: Weights
    applied: Weights

    def exact(self, rows: slice = slice(None), devices: int = 1) -> numpy_nets.Step:
        """The right step with some examples, which are normalized on each of some devices."""
        X, y = self.X[rows], self.y[rows]
        return numpy_nets.step(self.chapter, X, y, self.weights, shard_bounds(len(X), devices))


def fit(target: Array, basis: Sequence[Array], limit: float) -> Array | None:
    """The factors with which arrays add up to a target; None if they do not."""
    matrix = np.stack([array.ravel() for array in basis], axis=1)
    factors: Array = np.linalg.lstsq(matrix.T @ matrix, matrix.T @ target.ravel(), rcond=None)[0]
    off = np.abs(matrix @ factors - target.ravel()).max()
    return factors if off < limit * np.abs(target).max() else None


def parts_in(array: Array, parts: Mapping[str, Array]) -> str:
    """How often the parts are in an array in which each is due once."""
    basis = list(parts.values())
    factors = fit(array, basis, ROUNDED)
    if factors is not None:
        times = np.round(factors, 2) + 0.0  # no -0
        counts = dict(zip(parts, times, strict=True))
        wrong = [f"{part} {n:g} times" for part, n in counts.items() if n != 1]
        if wrong:
            return f"has {', '.join(wrong)}"
    expected = np.sum(basis, axis=0)
    partly = np.where(array == 0, 0, expected)
    if not array.all() and distance(array, partly)[0] < ROUNDED:
        return "is 0 in some places, and right in the others"
    off, _ = distance(array, expected)
    return f"is off by {off:.1e} of its largest entry"


def mistake(update: Update, wrong: Sequence[str], previous: Update | None) -> str:
    """The mistake that fits the updates of some weights, in words."""
    exact = update.exact()
    applied = flat(update.applied, wrong)
    grad = flat(exact.gradients, wrong)
    names = ", ".join(wrong[:2])
    if wrong[2:]:
        names += " and others"
    if not np.isfinite(applied).all():
        return f"{names} is NaN or infinite"
    if not applied.any():
        return f"{names} is not changed"
    off, _ = distance(applied, grad)
    limit = min(2 * ROUNDED, off / 10)
    for k in normalizing_devices(update):
        per_device = update.exact(devices=k).gradients
        if fit(applied, [flat(per_device, wrong)], limit) is not None:
            return f"each of {k} devices normalizes by its own examples"
    subject = "the gradient"
    if len(wrong) < len(exact.gradients):
        subject = f"the gradient of {names}"
    shares = fit(applied, single_gradients(update, wrong), limit)
    if shares is not None:
        return f"{subject} is {weighted(shares, len(update.X))}"
    for phrase, parts in stale(update, wrong, grad, previous):
        if (factors := fit(applied, parts, limit)) is not None:
            return f"{subject} {phrase.format(factors[-1])}"
    return f"{subject} is off by {off:.1e} of its largest entry"


def flat(arrays: Mapping[str, Array], names: Sequence[str]) -> Array:
    vectors = [arrays[name].ravel() for name in names]
    return np.concatenate(vectors).astype(np.float64)


def normalizing_devices(update: Update) -> Sequence[int]:
    if all(map(trainable, update.weights)):
        return ()
    return range(2, MOST // 2 + 1)


def single_gradients(update: Update, names: Sequence[str]) -> list[Array]:
    """The parts of the mean gradient: each example's, unless they are normalized together."""
    n = len(update.X)
    rows = [slice(i, i + 1) for i in range(n)]
    if normalizing_devices(update):
        rows = [slice(None)]
    return [flat(update.exact(part).gradients, names) / len(rows) for part in rows]


def stale(
    update: Update, names: Sequence[str], grad: Array, previous: Update | None
) -> Iterator[tuple[str, list[Array]]]:
    """What a step may take from the weights or from the step before, in words."""
    weights = flat(update.weights, names)
    yield "has {:.2g} times the weight added", [grad, weights]
    if previous is None:
        return
    last = flat(previous.applied, names)
    before = replace(update, weights=previous.weights)
    old = flat(before.exact().gradients, names)
    yield "is that of the weights before the last step", [old]
    yield "is that of the last minibatch", [last]
    yield "has {:.2g} times the last update added: momentum, or kept gradients", [grad, last]


def weighted(shares: Array, n: int) -> str:
    """How much each example counts, where 1 is right; one number counts for all n."""
    unused = np.abs(shares) <= ROUNDED
    used = shares[~unused]
    if np.ptp(used) > ROUNDED:
        unequal = f"a sum in which examples count {shares.min():.3g} to {shares.max():.3g} times"
        return means_of_shards(shares, n) or unequal
    factor = float(used.mean())
    if not unused.any():
        return scaled(factor, n)
    missing = f"without the examples {listed(np.flatnonzero(unused).tolist())}"
    if factor > 1 + ROUNDED:
        missing += " and divided by the number of the others"
    return missing


def means_of_shards(shares: Array, n: int) -> str:
    """Whether examples count as in means of shards that differ in size; nothing if not."""
    for k in range(2, MOST + 1):
        for divisor, word in ((k, "mean"), (1, "sum")):
            sizes = n / (divisor * shares)
            whole = np.rint(sizes)
            off = np.abs(sizes - whole).max()
            if off < ROUNDED and abs((1 / whole).sum() - k) < ROUNDED:
                return f"the {word} of the means of {k} shards, which differ in size"
    return ""


def scaled(factor: float, n: int) -> str:
    """What a factor of a mean over n examples tells."""
    if abs(factor - n) < ROUNDED * n:
        return f"that of the sum over {n} examples, not of their mean"
    if 0 < factor < 1 and abs(1 / factor - round(1 / factor)) < ROUNDED:
        return f"1/{round(1 / factor)} of the right one"
    return f"{factor:.6g} times the right one"


def max_pool(X: Array) -> Array:
    h, w = X.shape[2] // 2 * 2, X.shape[3] // 2 * 2
    corners = [X[:, :, i:h:2, j:w:2] for i, j in product((0, 1), repeat=2)]
    largest: Array = np.maximum.reduce(corners)
    return largest


LAYERS: Final[dict[str, tuple[str, Callable[[Array], Array]]]] = {
    "flattened with channels last": ("flatten", lambda X: np.moveaxis(X, 1, 3).reshape(len(X), -1)),
    "with the largest entries of windows in place of means": ("pool", max_pool),
    "without ReLUs": ("relu", lambda X: X),
    "with sigmoids in place of ReLUs": ("relu", lambda X: 1 / (1 + np.exp(-X))),
    "with tanh in place of ReLUs": ("relu", np.tanh),
}
"""What a layer does by mistake, and the method of `numpy_nets` that does it right."""

WEIGHTS: Final[dict[str, tuple[str, Callable[[Array], Array]]]] = {
    "without biases": (".bias", lambda bias: 0 * bias),
    "with kernels turned by 180°": ("conv", lambda w: w[:, :, ::-1, ::-1] if w.ndim == 4 else w),
    "with an epsilon of 1e-3": ("running_var", lambda variance: variance + 1e-3 - EPSILON),
}


def logits_after_mistakes(
    chapter: str, weights: Weights, X: Array, logits: Array
) -> Iterator[tuple[str, Array]]:
    """Mistakes in words, and the logits that they give."""
    exact = numpy_nets.doubled(weights)
    make = numpy_nets.NETS[chapter]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax = exponentials / exponentials.sum(axis=1, keepdims=True)
    yield "after a softmax", softmax
    yield "after a logarithmic softmax", np.log(softmax)
    yield "after a ReLU", np.maximum(logits, 0)
    for phrase, (method, layer) in LAYERS.items():
        changed = make(exact)
        setattr(changed, method, layer)
        yield phrase, changed.forward(X)
    for phrase, (part, change) in WEIGHTS.items():
        new = {name: change(values) for name, values in exact.items() if part in name}
        yield phrase, make(exact | new).forward(X)
    yield "of pixels that are divided by 255 again", make(exact).forward(X / 255)
    yield "of pixels from -1 to 1", make(exact).forward(2 * X - 1)
    yield "with the statistics of these images", make(exact, [(0, len(X))]).forward(X)
