"""How far arrays are apart, relative to the largest entry of what is expected, and where.

NaN, or another shape, is infinitely far from anything.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Array

COUNTED: Final = {"losses": "step", "losses by epoch": "epoch"}


def distance(
    values: Array, expected: Array, scale: float | None = None
) -> tuple[float, tuple[int, ...]]:
    """The largest difference over `scale` (the largest expected entry), and where it is."""
    if values.shape != expected.shape or not (finite(values) and finite(expected)):
        return math.inf, ()
    if not expected.size:
        return 0.0, ()
    with np.errstate(over="ignore"):
        difference = np.abs(wide(values) - wide(expected))
    worst = np.unravel_index(int(difference.argmax()), difference.shape)
    scale = largest(expected) if scale is None else scale
    far = float(difference[worst]) / (scale or 1.0)
    return math.inf if math.isnan(far) else far, tuple(int(index) for index in worst)


def finite(values: Array) -> bool:
    return bool(np.isfinite(values).all())


def wide(values: Array) -> Array:
    return values.astype(np.float64, copy=False)


def largest(values: Array) -> float:
    """The absolute value of the largest entry; 0 if there is none."""
    return float(np.abs(wide(values)).max(initial=0.0))


def first_beyond(values: Array, expected: Array, limit: float) -> int:
    """The first entry of (n,), counted from 1, that is farther off than the limit."""
    with np.errstate(over="ignore"):
        off = np.abs(wide(values) - wide(expected)) > limit * largest(expected)
    return int(off.argmax()) + 1


def first_near(array: Array, others: Iterable[tuple[str, Array]], limit: float) -> str:
    """The words for the first of some arrays that is nearer than the limit; nothing if none is."""
    return next((phrase for phrase, other in others if distance(array, other)[0] < limit), "")


@dataclass(frozen=True)
class Distance:
    """How far an array is from the expected one, and where; `step` is counted from 1."""

    array: str
    far: float
    where: str
    step: int | None = None


def compare(
    arrays: Mapping[str, Array],
    expected: Mapping[str, Array],
    prefix: str,
    scales: Mapping[str, float] | None = None,
) -> list[Distance]:
    """The distance of each array whose name begins with `prefix`, relative to its `scales`."""
    distances = []
    for name in {**expected, **arrays}:
        if not name.startswith(prefix):
            continue
        if name not in expected or name not in arrays:
            distances.append(Distance(name, math.inf, name))
            continue
        scale = (scales or {}).get(name) or largest(expected[yardstick(name, expected)])
        finite_scale = scale if math.isfinite(scale) else None
        far, index = distance(arrays[name], expected[name], finite_scale)
        where = f"{name}{list(index)}" if index else name
        if name in COUNTED and index:
            where = f"{COUNTED[name]} {index[0] + 1}"
        distances.append(Distance(name, far, where))
    return distances or [Distance(prefix, math.inf, f"there is no {prefix} to compare with")]


def yardstick(name: str, arrays: Mapping[str, Array]) -> str:
    """The array whose largest entry is the measure for `name`: itself, except for some biases.

    Batch normalization takes away what its convolution's bias adds. Such a bias has gradient 0,
    except for the rounding of numbers as large as the weight's gradient.
    """
    layer, _, kind = name.rpartition(".")
    path, _, convolution = layer.rpartition("conv")
    needed = {f"{path}bn{convolution}.weight", f"{layer}.weight"}
    if kind == "bias" and needed <= arrays.keys():
        return f"{layer}.weight"
    return name
