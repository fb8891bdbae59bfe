"""Canonical weights: their names, shapes and initial values, and the files they travel in."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from common.errors import RequestError
from common.files import write_atomically
from common.interface import Array, Weights

LENET: Final[dict[str, tuple[int, ...]]] = {
    "conv1.weight": (20, 1, 3, 3),  # (out channels, in channels, rows, columns)
    "conv1.bias": (20,),
    "conv2.weight": (50, 20, 5, 5),
    "conv2.bias": (50,),
    "fc1.weight": (800, 128),  # (in, out); the 800 run over channel, row, column: 50 x 4 x 4
    "fc1.bias": (128,),
    "fc2.weight": (128, 10),
    "fc2.bias": (10,),
}
"""Name and shape of each of LeNet's parameters: 129,068 numbers."""

SHAPES: Final = {"scratch": LENET}
"""The canonical names and shapes of each chapter's weights."""


def lenet_weights(seed: int, dtype: str) -> Weights:
    """The book's initial LeNet: weights from N(0, 0.01²), biases 0, drawn with NumPy.

    The numbers are rounded to float32 in either dtype, so a float64 run starts from exactly the
    same point as a float32 run.
    """
    random = np.random.RandomState(seed)
    weights = {}
    for name, shape in LENET.items():
        drawn = 0.01 * random.standard_normal(shape) if name.endswith("weight") else np.zeros(shape)
        weights[name] = drawn.astype(np.float32).astype(dtype)
    return weights


def save_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Writes `weights` to a `.safetensors` file, whole or not at all."""
    # safetensors stores the memory as it lies, so a transposed view must be laid out first.
    contiguous = {name: np.ascontiguousarray(values) for name, values in weights.items()}
    write_atomically(path, lambda temporary: save_file(contiguous, temporary))


def load_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> Weights:
    """Reads a `.safetensors` file that must hold exactly the tensors of `shapes`, all finite.

    Raises RequestError that names the file and the first thing wrong with it.
    """
    try:
        weights = load_file(path)
    except (OSError, SafetensorError, TypeError, AttributeError) as error:
        # The last two: a type that NumPy does not have, such as bfloat16.
        raise RequestError(f"cannot read weights from {path}: {error}") from None
    if odd := sorted(weights.keys() ^ shapes.keys()):
        what = "is missing from" if odd[0] in shapes else "is not expected in"
        raise RequestError(f"{odd[0]} {what} {path}; it must hold {', '.join(shapes)}")
    return {name: _checked(path, name, weights[name], shapes[name], dtype) for name in shapes}


def digest(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 over names, shapes and values as float64: the same for either dtype."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], dtype="<f8")
        state.update(f"{name}{values.shape}".encode())
        state.update(values.tobytes())
    return state.hexdigest()


def _checked(path: Path, name: str, values: Array, shape: tuple[int, ...], dtype: str) -> Array:
    if values.shape != shape:
        raise RequestError(f"{name} in {path} has shape {values.shape}, expected {shape}")
    if values.dtype.kind != "f":
        raise RequestError(f"{name} in {path} holds {values.dtype}, expected floating point")
    with np.errstate(over="ignore"):
        converted = values.astype(dtype)
    if not np.isfinite(converted).all():
        raise RequestError(f"{name} in {path} holds NaN, infinity or what is too large for {dtype}")
    return converted
