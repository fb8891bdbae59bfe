"""Keras's layout of weights, and the canonical one of `common/models/nets.py`."""

from common.base.arrays import Array


def from_canonical(name: str, values: Array) -> Array:
    """A weight in Keras's layout: (rows, columns, in, out) for a convolution."""
    return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values


def to_canonical(name: str, values: Array) -> Array:
    """The inverse of `from_canonical`; a layer's images (n, rows, columns, channels), likewise."""
    if values.ndim < 4:
        return values
    return values.transpose((3, 2, 0, 1) if name.endswith(".weight") else (0, 3, 1, 2))
