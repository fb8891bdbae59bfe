"""How far arrays are apart, relative to the largest entry of what is expected, and where.

NaN, or another shape, is infinitely far from anything.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.interface import Array


def distance(
    values: Array, expected: Array, scale: float | None = None
) -> tuple[float, tuple[int, ...]]:
    """The largest difference over `scale` (the largest expected entry), and where it is."""
    if values.shape != expected.shape or not np.isfinite(values).all():
        return math.inf, ()
    difference = np.abs(values.astype(np.float64) - expected)
    worst = np.unravel_index(int(difference.argmax()), difference.shape)
    scale = float(np.abs(expected).max()) if scale is None else scale
    return float(difference[worst]) / (scale or 1.0), tuple(int(index) for index in worst)


@dataclass(frozen=True)
class Distance:
    """How far an array is from the expected one, and at which entry or step it is farthest."""

    array: str
    far: float
    where: str


def compare(
    arrays: Mapping[str, Array], expected: Mapping[str, Array], prefix: str
) -> list[Distance]:
    """The distance of every array whose name starts with `prefix`, in the net's order."""
    found = []
    for name in (name for name in expected if name.startswith(prefix)):
        largest = float(np.abs(expected[_yardstick(name, expected)]).max())
        far, index = distance(arrays.get(name, np.empty(0)), expected[name], largest)
        step = f"step {index[0] + 1}" if name == "losses" and index else ""
        found.append(Distance(name, far, step or f"{name}{list(index)}"))
    return found or [Distance(prefix, math.inf, f"there is no {prefix} to compare with")]


def _yardstick(name: str, arrays: Mapping[str, Array]) -> str:
    """The array whose largest entry is the measure for `name`: itself, but for some biases.

    Batch normalization takes away whatever its convolution's bias adds. Such a bias has gradient
    0, and what is found instead is the rounding of numbers as large as the weight's gradient.
    """
    layer, _, kind = name.rpartition(".")
    path, _, convolution = layer.rpartition("conv")
    if kind == "bias" and f"{path}bn{convolution}.weight" in arrays:
        return f"{layer}.weight"
    return name
