"""The files that weights travel in, and their digest."""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.files import require_regular, write_atomically

LARGEST: Final = 1 << 48
"""More entries than any array that there is; one without entries may claim more."""


def save_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Writes `weights` to a `.safetensors` file, whole or not at all."""
    # safetensors stores the memory as it lies, so a transposed view must be laid out first.
    contiguous = {name: np.ascontiguousarray(values) for name, values in weights.items()}
    write_atomically(path, lambda temporary: temporary.write_bytes(save(contiguous)))


def load_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> Weights:
    """Reads a `.safetensors` file that must hold exactly the tensors of `shapes`, all finite.

    Raises RequestError that names the file and the first thing wrong with it.
    """
    weights = load_arrays(path)
    if odd := sorted(weights.keys() ^ shapes.keys()):
        what = "is missing from" if odd[0] in shapes else "is not expected in"
        raise RequestError(f"{odd[0]} {what} {path}; it must hold {_listed(list(shapes))}")
    return {name: _checked(path, name, weights[name], shapes[name], dtype) for name in shapes}


def load_arrays(path: Path) -> Weights:
    """Reads whatever arrays a `.safetensors` file holds. Raises RequestError if it cannot."""
    try:
        require_regular(path)
        weights: Weights = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise RequestError(f"cannot read weights from {path}: {error}") from None
    except (TypeError, AttributeError) as error:
        why = f"{error}: NumPy lacks this type, convert it to float32"
        raise RequestError(f"cannot read weights from {path}: {why}") from None
    for name, values in weights.items():
        # NumPy minds huge sizes beside a 0, too, as soon as it converts such an array.
        if math.prod(max(size, 1) for size in values.shape) > LARGEST:
            raise RequestError(f"cannot read weights from {path}: {name} has shape {values.shape}")
    return weights


def shape_in(path: Path, name: str) -> tuple[int, ...]:
    """The shape of one tensor of a `.safetensors` file. Raises RequestError if it is not there."""
    try:
        require_regular(path)
        with safe_open(path, framework="numpy") as file:
            return tuple(file.get_slice(name).get_shape())
    except (OSError, SafetensorError) as error:
        raise RequestError(f"cannot read weights from {path}: {error}") from None


def digest(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 over names, shapes and values as float64: the same for either dtype."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        with np.errstate(invalid="ignore"):  # of some kinds of NaN
            values = np.ascontiguousarray(arrays[name], dtype="<f8")
        state.update(f"{name}{values.shape}".encode())
        state.update(values.tobytes())
    return state.hexdigest()


def _listed(names: list[str], most: int = 8) -> str:
    """The names in a line, the first of them where they are many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _checked(path: Path, name: str, values: Array, shape: tuple[int, ...], dtype: str) -> Array:
    if values.shape != shape:
        raise RequestError(f"{name} in {path} has shape {values.shape}, expected {shape}")
    if values.dtype.kind != "f":
        raise RequestError(f"{name} in {path} holds {values.dtype}, expected floating point")
    with np.errstate(over="ignore", invalid="ignore"):  # some kinds of NaN are told of, too
        converted = values.astype(dtype)
    if not np.isfinite(converted).all():
        raise RequestError(f"{name} in {path} holds NaN, infinity or what is too large for {dtype}")
    return converted
