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
"""The most devices that are thought of."""

ROUNDED: Final = 1e-2
"""How near to each other factors are that tell the same mistake."""


BASE: Final = 16
"""If device i has the number 16^i, the digits of a sum tell how often each device is in it."""

Shares = tuple[Fraction, ...]
"""How often each device is in a number; nothing for a number that is no such sum."""


def shares_in(value: float, k: int) -> Shares:
    """How often each of k devices is in a sum of powers of `BASE`, or in their mean."""
    decoded: list[Shares] = []
    for divisor in range(1, k + 1) if np.isfinite(value) else ():
        whole = round(value * divisor)
        digits = [whole // BASE**i % BASE for i in range(k)]
        if 0 <= whole < BASE**k and abs(value * divisor - whole) < 1e-6:
            decoded.append(tuple(Fraction(digit, divisor) for digit in digits))
    plain = [shares for shares in decoded if len({*shares} - {0}) < 2]
    return [*plain, *decoded, ()][0]


def contributions(held: Sequence[Sequence[Shares]], place: str) -> str:
    """What devices have where the sum of all is due; nothing if they have it in each place."""
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
    expected, factors = np.sum([*parts.values()], axis=0), fit(array, [*parts.values()], ROUNDED)
    times = np.ones(len(parts)) if factors is None else np.round(factors, 2) + 0.0  # no -0
    wrong = [f"{part} {n:g} times" for part, n in zip(parts, times, strict=True) if n != 1]
    if wrong:
        return f"has {', '.join(wrong)}"
    if distance(array, np.where(array == 0, 0, expected))[0] < ROUNDED:
        return "is 0 in some places, and right in the others"
    return f"is off by {distance(array, expected)[0]:.1e} of its largest entry"


def mistake(update: Update, wrong: Sequence[str], previous: Update | None) -> str:
    """The mistake that fits the updates of some weights, in words."""

    def flat(arrays: Mapping[str, Array]) -> Array:
        return np.concatenate([arrays[name].ravel().astype(np.float64) for name in wrong])

    names, n = listed(wrong[:3] if len(wrong) < 4 else [*wrong[:2], "others"]), len(update.X)
    exact, applied = update.exact(), flat(update.applied)
    grad = flat(exact.gradients)
    if not np.isfinite(applied).all():
        return f"{names} is NaN or infinite"
    if not applied.any():
        return f"{names} is not changed"
    limit = min(2 * ROUNDED, distance(applied, grad)[0] / 10)
    subject = "the gradient" if len(wrong) == len(exact.gradients) else f"the gradient of {names}"
    singles = [slice(i, i + 1) for i in range(n)]
    if not all(map(trainable, update.weights)):
        singles = [slice(None)]  # normalized: an example is nothing by itself
        for k in range(2, MOST // 2 + 1):
            if fit(applied, [flat(update.exact(devices=k).gradients)], limit) is not None:
                return f"each of {k} devices normalizes by its own examples"
    basis = [flat(update.exact(rows).gradients) / len(singles) for rows in singles]
    if (shares := fit(applied, basis, limit)) is not None:
        return f"{subject} is {weighted(shares, n)}"
    slips = {"has {:.2g} times the weight added": [grad, flat(update.weights)]}
    if previous is not None:
        last, stale = flat(previous.applied), replace(update, weights=previous.weights).exact()
        slips["is that of the weights before the last step"] = [flat(stale.gradients)]
        slips["is that of the last minibatch"] = [last]
        slips["has {:.2g} times the last update added: momentum, or kept gradients"] = [grad, last]
    for phrase, parts in slips.items():
        if (factors := fit(applied, parts, limit)) is not None:
            return f"{subject} {phrase.format(factors[-1])}"
    return f"{subject} is off by {distance(applied, grad)[0]:.1e} of its largest entry"


def weighted(shares: Array, n: int) -> str:
    """How much each example counts, where 1 is right; one number counts for all n."""
    used = shares[np.abs(shares) > ROUNDED]
    for k in range(2, MOST + 1) if np.ptp(used) > ROUNDED else ():
        for divisor, word in ((k, "mean"), (1, "sum")):
            sizes = n / (divisor * shares)
            shards = (1 / np.rint(sizes)).sum()
            if np.abs(sizes - np.rint(sizes)).max() < ROUNDED and abs(shards - k) < ROUNDED:
                return f"the {word} of the means of {k} shards, which differ in size"
    if np.ptp(used) > ROUNDED:
        return f"a sum in which examples count {shares.min():.3g} to {shares.max():.3g} times"
    if len(used) < len(shares):
        missing = [i for i, share in enumerate(shares) if abs(share) <= ROUNDED]
        others = " and divided by the number of the others" if used[0] > 1 + ROUNDED else ""
        return f"without the examples {listed(missing)}{others}"
    return scaled(float(used.mean()), n)


def scaled(factor: float, n: int) -> str:
    """What a factor of a mean over n examples tells."""
    if abs(factor - n) < ROUNDED * n:
        return f"that of the sum over {n} examples, not of their mean"
    if 0 < factor < 1 and abs(1 / factor - round(1 / factor)) < ROUNDED:
        return f"1/{round(1 / factor)} of the right one"
    return f"{factor:.4g} times the right one"


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
"""What is done to weights of such names."""


def logits_after_mistakes(
    chapter: str, weights: Weights, X: Array, logits: Array
) -> Iterator[tuple[str, Array]]:
    """Mistakes in words, and the logits that they give."""
    exact, make = numpy_nets.doubled(weights), numpy_nets.NETS[chapter]
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
