"""Files of weights, and their digest."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.files import require_regular, write_atomically

TYPES: Final = {f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "IUF" for n in (1, 2, 4, 8)} | {
    "BOOL": "?",
    "BF16": "<u2",
}


def save_weights(path: Path, weights: Mapping[str, Array]) -> None:
    """Writes `weights` to a `.safetensors` file, whole or not at all."""
    # safetensors writes the memory as it is, so a transposed view has to be copied.
    contiguous = {name: np.ascontiguousarray(values) for name, values in weights.items()}
    write_atomically(path, lambda temporary: temporary.write_bytes(save(contiguous)))


def load_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> Weights:
    """Reads a `.safetensors` file of exactly the tensors of `shapes`. Raises RequestError."""
    weights = load_arrays(path)
    if odd := sorted(weights.keys() ^ shapes.keys()):
        what = "is missing from" if odd[0] in shapes else "is not expected in"
        raise RequestError(f"{odd[0]} {what} {path}; it must hold {_listed(list(shapes))}")
    return {name: _checked(path, name, weights[name], shapes[name], dtype) for name in shapes}


def load_arrays(path: Path) -> Weights:
    """The arrays in a `.safetensors` file, bfloat16 as float32. Raises RequestError."""
    return {name: _array(path, name, **stored) for name, stored in _stored(path).items()}


def bfloat16_note(path: Path) -> str:
    """Names the file's arrays in bfloat16, which are read as float32; empty without any."""
    names = [name for name, stored in _stored(path).items() if stored["dtype"] == "BF16"]
    return f"{path} has bfloat16, read as float32: {_listed(names)}" if names else ""


def _stored(path: Path) -> dict[str, Any]:
    """The dtype, shape and data of each array in a `.safetensors` file."""
    try:
        require_regular(path)
        return dict(sorted(deserialize(path.read_bytes())))
    except (OSError, SafetensorError) as error:
        why = str(error)
        if isinstance(error, SafetensorError):
            why = f"it is no .safetensors file ({error}): write one with safetensors' save_file"
        raise RequestError(f"cannot read weights from {path}: {why}") from None


def _array(path: Path, name: str, dtype: str, shape: list[int], data: bytearray) -> Array:
    try:
        values = np.frombuffer(data, TYPES[dtype])
        if dtype == "BF16":  # the upper half of a float32
            values = (values.astype("<u4") << 16).view("<f4")
        return values.reshape(shape)
    except (KeyError, ValueError):
        why = f"NumPy lacks {dtype} of shape {tuple(shape)}, as {name} is: convert it to float32"
        raise RequestError(f"cannot read weights from {path}: {why}") from None


def digest(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 of names, shapes and values as float64, the same for either dtype."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        with np.errstate(invalid="ignore"):  # of some kinds of NaN
            values = np.ascontiguousarray(arrays[name], dtype="<f8")
        state.update(f"{name}{values.shape}".encode())
        state.update(values.tobytes())
    return state.hexdigest()


def _listed(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _checked(path: Path, name: str, values: Array, shape: tuple[int, ...], dtype: str) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # some kinds of NaN are refused, too
        converted = values.astype(dtype)
    why = ""
    if values.shape != shape:
        why = f"has shape {values.shape}, expected {shape}"
    elif values.dtype.kind != "f":
        why = f"holds {values.dtype}, expected floating point"
    elif not np.isfinite(converted).all():
        why = f"holds NaN, infinity or what is too large for {dtype}"
    if why:
        raise RequestError(f"{name} in {path} {why}")
    return converted
