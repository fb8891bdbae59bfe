"""Finds how one array becomes another: transposed, reshaped, or with an axis in another order."""

from collections.abc import Callable, Iterator
from itertools import permutations
from math import isqrt, prod
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.compare.distances import distance, wide

INVARIANT: Final[tuple[Callable[[Array], float], ...]] = (
    lambda values: float(values.flat[0]),
    lambda values: float(values.flat[-1]),
    lambda values: float(values.max()),
    lambda values: float(values.min()),
)
"""What no transpose or reshape changes."""


def likeness(ours: Array, expected: Array, close: float) -> str:
    """How `expected` is `ours`, as a NumPy expression, to within `close`; or nothing."""
    if ours.size != expected.size or not ours.size:
        return ""
    if not all(abs(mark(ours) - mark(expected)) <= close for mark in INVARIANT):
        return ""
    for expression, values in arrangements(ours, expected, close):
        if values.shape == expected.shape and distance(values, expected, 1.0)[0] <= close:
            return f"equal after {expression}" if expression else "equal"
    return ""


def arrangements(ours: Array, expected: Array, close: float) -> Iterator[tuple[str, Array]]:
    """Expressions that may make `expected` of `ours`, simple ones first, with their values."""
    yield "", ours
    if constant(expected):  # its entries fit in any order
        return
    for axes in permutations(range(ours.ndim)) if ours.ndim <= 5 else ():
        yield f".transpose{axes}", ours.transpose(axes)
    yield f".reshape{expected.shape}", ours.reshape(expected.shape)
    for strided in strides(wide(ours).ravel(), wide(expected).ravel(), close):
        outer_first = sorted(strided, key=lambda axis: -axis[1])
        shape = tuple(length for length, _ in outer_first)
        if all(stride == prod(shape[n:]) for n, (_, stride) in enumerate(outer_first, 1)):
            order = tuple(outer_first.index(axis) for axis in reversed(strided))
            values = ours.reshape(shape).transpose(order)
            expression = f".reshape{shape}" if shape != ours.shape else ""
            expression += f".transpose{order}"
            expression += f".reshape{expected.shape}" if values.shape != expected.shape else ""
            yield expression, values.reshape(expected.shape)


def strides(
    ours: Array, expected: Array, close: float, inner: tuple[tuple[int, int], ...] = ()
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Splits `expected`, which is flat, into axes that are strided in `ours`, the last one first.

    An axis is a length and a stride. `inner` are the axes that are known; for them the next axis
    repeats, and the first and the last entry of each repetition have to fit.
    """
    block = prod(length for length, _ in inner)
    last = sum((length - 1) * stride for length, stride in inner)
    if block == len(expected):
        yield inner
        return
    longest = []
    for stride in divisors(len(expected)):
        fits = min(
            fitting(ours[::stride], expected[::block], close),
            fitting(ours[last::stride], expected[block - 1 :: block], close),
        )
        length = max((n for n in divisors(len(expected) // block) if n <= fits), default=1)
        if length > 1:
            longest.append((length, stride))
    for axis in sorted(longest, reverse=True)[:3]:  # more than one fits if entries are equal
        yield from strides(ours, expected, close, (*inner, axis))


def fitting(ours: Array, expected: Array, close: float) -> int:
    """How many of the first entries are equal."""
    count = min(len(ours), len(expected))
    wrong = ~(np.abs(ours[:count] - expected[:count]) <= close)
    return int(wrong.argmax()) if wrong.any() else count


def divisors(number: int) -> list[int]:
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


def constant(values: Array) -> bool:
    return values.size < 2 or bool((values == values.flat[0]).all())


def chance(values: Array) -> float:
    """A share of the standard deviation: farther apart, arrays may be similar by chance."""
    with np.errstate(all="ignore"):
        return float(wide(values).std()) / 25 if values.size else 0.0
