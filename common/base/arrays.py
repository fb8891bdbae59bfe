"""Arrays on the host, by name."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Weights = dict[str, Array]
"""Weights, or their gradients, by canonical name and in canonical layout, on the host."""
