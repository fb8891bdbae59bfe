"""Arrays on the host, by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

Weights = dict[str, Array]
"""Weights, or their gradients, by canonical name and in canonical layout, on the host."""


def part(arrays: Mapping[str, Array], prefix: str) -> Weights:
    """The arrays whose names start with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def on_host(tensor: Any) -> Array:
    """A copy in NumPy of a tensor of any framework, taken in the framework's way."""
    if hasattr(tensor, "asnumpy"):
        return np.array(tensor.asnumpy())
    if hasattr(tensor, "detach"):  # PyTorch would refuse while it records gradients
        tensor = tensor.detach().cpu()
    return np.array(tensor.numpy() if hasattr(tensor, "numpy") else tensor)
