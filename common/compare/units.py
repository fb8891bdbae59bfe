"""Which ReLU units in doubt rounding has decided otherwise than float64 does."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.distances import compare
from common.compare.taken import Seen, Taken, beyond, scales_of


@dataclass(frozen=True)
class Decided:
    """The gradient that is expected, with the units in doubt decided as a run has decided them.

    `flipped` counts those that float64 decides otherwise, `tried` all that were looked at.
    """

    gradients: Weights
    flipped: int = 0
    tried: int = 0


def decided(step: Taken, seen: Seen, right: numpy_nets.Step, limit: float) -> Decided:
    """What is expected where a run shows `seen`, which is held to the limit.

    Where it is farther from what is `right` than rounding explains, units in doubt are tried, the
    nearest to zero first and each time twice as many, until some explain it. They have flipped,
    each as a whole. No limit is widened.
    """
    grads = right.gradients

    def far(expected: Weights) -> float:
        found = compare(seen.beside(expected), expected, "", right.added)
        return max(each.far for each in found)

    if step.X.dtype == np.float64 or not limit < far(grads) < np.inf:
        return Decided(grads)
    scales = scales_of(right)

    def vector(arrays: Weights) -> Array:
        return np.concatenate([(arrays[name] / scales[name]).ravel() for name in scales])

    off = vector({name: seen.values[name] - values for name, values in grads.items()})
    blur = vector(seen.blur) if seen.blur else np.zeros_like(off)
    units = numpy_nets.flips(step.chapter, step.X, step.y, step.before, step.shards)
    gained: list[Weights] = []
    parts: list[Array] = []
    moved, chosen = grads, list[int]()
    while far(moved) > limit and (more := list(islice(units, max(1, len(gained))))):
        gained += more
        parts += [vector(each) for each in more]
        chosen = explaining(off, blur, parts, limit)
        moved = {name: sum((gained[i][name] for i in chosen), grads[name]) for name in grads}
    return Decided(moved, len(chosen), len(gained))


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
