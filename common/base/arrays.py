"""Arrays on the host, by name."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Weights = dict[str, Array]
"""Weights, or their gradients, by canonical name and in canonical layout, on the host."""


def part(arrays: Mapping[str, Array], prefix: str) -> Weights:
    """The arrays whose names start with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
