"""The files that weights travel in, and their digest."""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.files import require_regular, write_atomically

LARGEST: Final = 1 << 48
"""More entries than any array that there is; one without entries may claim more."""

FORMATS: Final = {
    rb"\Z": "it is empty",
    rb"version https://git-lfs": "it is a Git LFS pointer: `git lfs pull` fetches the file itself",
    rb"\s*<(!doctype|html|\?xml)": "it is an HTML or XML page: download the file itself",
    rb"PK\x03\x04|\x80\x02": "it is of torch.save: write it with safetensors.torch.save_file",
    rb"\x89HDF": "it is an HDF5 file: write its arrays with safetensors.numpy.save_file",
}
"""What is often given in the place of a `.safetensors` file, by how it begins."""


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
    """Reads whatever arrays a `.safetensors` file holds; bfloat16, which NumPy lacks, as float32.

    Raises RequestError if it cannot.
    """
    with _opened(path) as file:
        halves = _in_bfloat16(file)
        stored = dict(deserialize(path.read_bytes())) if halves else {}
        weights: Weights = {
            name: _widened(**stored[name]) if name in halves else file.get_tensor(name)
            for name in list(file.keys())
        }
    for name, values in weights.items():
        # NumPy minds huge sizes beside a 0, too, as soon as it converts such an array.
        if math.prod(max(size, 1) for size in values.shape) > LARGEST:
            raise RequestError(f"cannot read weights from {path}: {name} has shape {values.shape}")
    return weights


def bfloat16_note(path: Path) -> str:
    """A line on the file's arrays in bfloat16, which are read as float32; empty without any."""
    with _opened(path) as file:
        names = _in_bfloat16(file)
    return f"{path} has bfloat16, read as float32: {_listed(names)}" if names else ""


def shape_in(path: Path, name: str) -> tuple[int, ...]:
    """The shape of one tensor of a `.safetensors` file. Raises RequestError if it is not there."""
    with _opened(path) as file:
        return tuple(file.get_slice(name).get_shape())


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An open `.safetensors` file. Raises RequestError if it, or an array, cannot be read."""
    try:
        require_regular(path)
        with safe_open(path, framework="numpy") as file:
            yield file
    except (OSError, SafetensorError, ValueError) as error:
        why = str(error)
        if isinstance(error, SafetensorError):
            with path.open("rb") as stream:
                start = stream.read(100)
            known = (what for begins, what in FORMATS.items() if re.match(begins, start, re.I))
            why = next(known, why)
        raise RequestError(f"cannot read weights from {path}: {why}") from None
    except (TypeError, AttributeError) as error:
        why = f"{error}: NumPy lacks this type, convert it to float32"
        raise RequestError(f"cannot read weights from {path}: {why}") from None


def _in_bfloat16(file: Any) -> list[str]:
    """The names of a file's arrays in bfloat16."""
    return [name for name in list(file.keys()) if file.get_slice(name).get_dtype() == "BF16"]


def digest(arrays: Mapping[str, Array]) -> str:
    """The SHA-256 over names, shapes and values as float64: the same for either dtype."""
    state = hashlib.sha256()
    for name in sorted(arrays):
        with np.errstate(invalid="ignore"):  # of some kinds of NaN
            values = np.ascontiguousarray(arrays[name], dtype="<f8")
        state.update(f"{name}{values.shape}".encode())
        state.update(values.tobytes())
    return state.hexdigest()


def _widened(dtype: str, shape: list[int], data: bytes) -> Array:
    """An array of bfloat16 as float32, exactly: bfloat16 is the upper half of a float32."""
    halves = np.frombuffer(data, "<u2").astype("<u4")
    return (halves << 16).view("<f4").reshape(shape)


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
