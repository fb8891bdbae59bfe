"""A gradient that is clipped by its global norm, and by which other norms people clip."""

from collections.abc import Iterator
from itertools import combinations, pairwise, product

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.diagnose.mistakes import Update, flat
from common.parallel.shards import shard_bounds
from common.terminal.tables import listed


def norm(grads: Weights) -> float:
    return float(np.linalg.norm(flat(grads, [*grads])))


def coefficient(applied: Weights, grads: Weights, clip: float) -> float:
    """By what clipping multiplies a gradient; frameworks add up to 1e-6 to the norm."""
    update, grad, size = flat(applied, [*grads]), flat(grads, [*grads]), norm(grads)
    if size <= clip or not np.isfinite(update).all():
        return min(1.0, clip / size)
    return float(np.clip(update @ grad / size**2, clip / (size + 1e-6), clip / size))


def wrongly_clipped(update: Update, grads: Weights, clip: float, mask: Array) -> str:
    """By which other norm an update is clipped, in words; nothing if none fits.

    `update` has the examples that count; `mask` tells where they are in the minibatch.
    """
    names, size = [*update.applied], norm(grads)
    applied, grad = flat(update.applied, names), flat(grads, names)
    limit = np.abs(applied - _clipped(grad, clip)).max() / 10
    for text, slip in _slips(update, grads, clip, mask):
        if np.abs(applied - slip).max() < limit:
            return text
    factor = float(applied @ grad) / size**2
    if factor <= 0 or np.abs(applied - factor * grad).max() >= limit:
        return ""
    ratio = clip / factor / size
    if abs(ratio**2 - round(ratio**2)) < 1e-5:
        text = f"is clipped by a norm that counts {ratio**2:.0f} replicas"
        whole = abs(ratio - round(ratio)) < 1e-5
        return f"{text}, or is of the sum over {ratio:.0f} devices" if whole else text
    for count, times in product(range(1, len(names)), (2, 3, 4, 0)):
        for some in combinations(names, count):
            square = size**2 + (times - 1) * norm({name: grads[name] for name in some}) ** 2
            if abs(clip / factor / square**0.5 - 1) < 1e-6:
                how = f"counts {listed(some)} {times} times" if times else f"lacks {listed(some)}"
                return f"is clipped by a norm that {how}"
    return f"is clipped by the norm × {ratio:.4g}"


def _clipped(grad: Array, clip: float) -> Array:
    return grad * min(1.0, clip / float(np.linalg.norm(grad)))


def _slips(update: Update, grads: Weights, clip: float, mask: Array) -> Iterator[tuple[str, Array]]:
    names, grad = [*update.applied], flat(grads, [*update.applied])
    yield "is not clipped", grad
    yield "is scaled to a norm that it does not exceed", grad * clip / norm(grads)
    yield "is clipped entry by entry", np.clip(grad, -clip, clip)
    apart = {name: _clipped(grads[name].ravel(), clip) for name in names}
    yield "is clipped by local norms: each array by its own", flat(apart, names)
    for k in (2, 3, 4):
        text = f"is clipped by local norms: each of {k} devices clips its"
        slices = [_clipped(grad[a:b], clip) for a, b in shard_bounds(len(grad), k)]
        yield f"{text} slice", np.concatenate(slices)
        ends = [int(mask[:b].sum()) for _, b in shard_bounds(len(mask), k)]
        shards = [(a, b) for a, b in pairwise([0, *ends]) if a < b]
        parts = [((b - a) / len(update.X), flat(_part(update, a, b), names)) for a, b in shards]
        yield f"{text} shard's mean", np.sum([w * _clipped(g, clip) for w, g in parts], axis=0)
        yield f"{text} shard's part", np.sum([_clipped(w * g, clip) for w, g in parts], axis=0)


def _part(update: Update, a: int, b: int) -> Weights:
    X, y = update.X[a:b], update.y[a:b]
    return numpy_nets.step(update.chapter, X, y, update.weights, [(0, b - a)]).gradients
