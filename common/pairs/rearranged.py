"""Whether one array is another one rearranged, as weights of another framework often are.

Nothing is guessed: a rearrangement is named only where all entries agree after it, and where the
numbers are such that they would not agree by chance.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from math import prod
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.compare.distances import distance, finite, largest, wide

SURE: Final = 1e-3
"""Beyond it, relative to the largest entry, agreement may be chance, whatever the tolerance is."""

MOST_AXES: Final = 5

Allowed = Callable[[Array, Array], float]
"""How far apart two arrays may be."""


def likeness(ours: Array, expected: Array, limit: float) -> str:
    """What makes `expected` of `ours`, in words; empty if nothing does, or it cannot be told.

    Looked for are another order of the axes, another shape, and another order along one axis.
    """
    limit = min(limit, SURE)
    with np.errstate(over="ignore", invalid="ignore"):
        if _close(ours, expected, limit) or not _same_numbers(ours, expected, limit):
            return ""
        orders = list(_axes(ours.shape, expected.shape))
        fits = [axes for axes in orders if _close(ours.transpose(axes), expected, limit)]
        if fits:
            return f"equal after .transpose{fits[0]}" if len(fits) == 1 else ""
        if ours.shape != expected.shape and _close(ours.reshape(expected.shape), expected, limit):
            return f"equal after .reshape{expected.shape}"
        return next(_reordered(ours, expected, orders, limit), "")


def counterparts(
    ours: Mapping[str, Array], expected: Mapping[str, Array], limit: Allowed
) -> dict[str, tuple[str, str]]:
    """For arrays of `expected`: which of `ours` is the same under another name, and how.

    Only where each is the other's only counterpart.
    """
    found = [
        (theirs, name, how)
        for theirs, wanted in expected.items()
        for name, values in ours.items()
        if (how := _how(values, wanted, limit(values, wanted)))
    ]
    offered = [theirs for theirs, _, _ in found]
    taken = [name for _, name, _ in found]
    return {
        theirs: (name, how)
        for theirs, name, how in found
        if offered.count(theirs) == taken.count(name) == 1
    }


def _how(ours: Array, expected: Array, limit: float) -> str:
    limit = min(limit, SURE)
    if _close(ours, expected, limit):
        return "equal" if _telling(expected, limit) else ""
    return likeness(ours, expected, limit)


def _close(ours: Array, expected: Array, limit: float) -> bool:
    return ours.shape == expected.shape and distance(ours, expected)[0] <= limit


def _telling(values: Array, limit: float) -> bool:
    """Whether the entries differ: zeros, or ones, look the same in any order."""
    if not values.size or not finite(values):
        return False
    values = wide(values)
    return bool(np.abs(values - values.flat[0]).max() > limit * largest(values))


def _same_numbers(ours: Array, expected: Array, limit: float) -> bool:
    """Whether the entries are the same in some order, which every rearrangement needs."""
    if ours.size != expected.size or not _telling(expected, limit) or not finite(ours):
        return False
    first, second = wide(ours).ravel(), wide(expected).ravel()
    # Most arrays that have nothing to do with each other need not be sorted.
    return abs(first.max() - second.max()) <= limit * largest(second) and _close(
        np.sort(first), np.sort(second), limit
    )


def _axes(shape: tuple[int, ...], wanted: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The orders of axes that make `wanted` of `shape`, the present one first.

    Axes of length 1 stay in their order: to exchange them moves nothing.
    """
    if len(shape) != len(wanted) or len(shape) > MOST_AXES:
        return
    for axes in permutations(range(len(shape))):
        single = [axis for axis in axes if shape[axis] == 1]
        if tuple(shape[axis] for axis in axes) == wanted and single == sorted(single):
            yield axes


def _reordered(
    ours: Array, expected: Array, orders: list[tuple[int, ...]], limit: float
) -> Iterator[str]:
    """Every order along an axis, after every order of axes, that makes `expected`, in words."""
    for axes in orders:
        moved = ours.transpose(axes)
        straight = axes == tuple(range(ours.ndim))
        how = "equal with" if straight else f"equal after .transpose{axes} and with"
        for axis in range(ours.ndim):
            order = _order(moved, expected, axis, limit)
            if order is not None:
                yield f"{how} {_words(order, axis, ours.ndim)}"


def _order(ours: Array, expected: Array, axis: int, limit: float) -> Array | None:
    """The order along an axis in which the slices of `ours` are those of `expected`."""
    first, second = (
        np.moveaxis(wide(each), axis, 0).reshape(each.shape[axis], -1) for each in (ours, expected)
    )
    # Sorted by their places along one line, slices that are equal come to the same place.
    line = np.random.RandomState(0).standard_normal(first.shape[1])
    order = np.empty(len(first), int)
    order[np.argsort(second @ line, kind="stable")] = np.argsort(first @ line, kind="stable")
    return order if _close(first[order], second, limit) else None


def _words(order: Array, axis: int, axes: int) -> str:
    """An order along an axis in words; if it is that of another flattening, of which."""
    n = len(order)
    what = "the entries" if axes == 1 else f"the {n} slices along axis {axis}"
    for outer in (each for each in range(2, n) if n % each == 0):
        inner = n // outer
        if any(np.array_equal(order, other) for _, other in flattenings((outer, inner))):
            return f"{what} in another order, {outer} × {inner} flattened as {inner} × {outer}"
    return f"{what} in another order"


def flattenings(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Every other order of the axes, and the index of each entry (n,) once flattened in it."""
    indices = np.arange(prod(shape)).reshape(shape)
    for axes in list(permutations(range(len(shape))))[1:]:
        yield axes, indices.transpose(axes).ravel()
