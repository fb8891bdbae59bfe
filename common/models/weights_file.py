"""The weights that every framework starts from, files of weights, and their digest."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.base.files import require_regular, write_atomically
from common.models.nets import Shapes, deviation

TYPES: Final = {f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "IUF" for n in (1, 2, 4, 8)} | {
    "BOOL": "?",
    "BF16": "<u2",
}

_dtype: Any = np.dtype  # NumPy 1.23 does not type metadata
BFLOAT16: Final = _dtype("<f4", metadata={"epsilon": 2.0**-7})
"""float32 that was read from bfloat16, with the machine epsilon of bfloat16."""

INDEX: Final = ".safetensors.index.json"
"""How the name of a sharded model's index ends."""


class Index(BaseModel):
    """A sharded model's index: in which file beside it each array is."""

    weight_map: dict[str, str]


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
    """The arrays in a `.safetensors` file, or of an index's files, bfloat16 as float32.

    Raises RequestError.
    """
    return {name: _array(path, name, **stored) for name, stored in _stored(path).items()}


def bfloat16_note(path: Path) -> str:
    """Names the file's arrays in bfloat16, which are read as float32; empty without any."""
    names = [name for name, stored in _stored(path).items() if stored["dtype"] == "BF16"]
    return f"{path} has bfloat16, read as float32: {_listed(names)}" if names else ""


def _stored(path: Path) -> dict[str, Any]:
    """The dtype, shape and data of each array in a `.safetensors` file, or of an index's files."""
    try:
        require_regular(path)
        if path.name.endswith(INDEX):
            return _sharded(path, Index.model_validate_json(path.read_bytes()).weight_map)
        return dict(sorted(deserialize(path.read_bytes())))
    except (OSError, SafetensorError, ValueError) as error:
        why = str(error)
        if isinstance(error, SafetensorError):
            why = f"it is no .safetensors file ({error}): write one with safetensors' save_file"
        elif isinstance(error, ValidationError):
            why = "it is no index: JSON with a weight_map of names and files"
        raise RequestError(f"cannot read weights from {path}: {why}") from None


def _sharded(path: Path, files: Mapping[str, str]) -> dict[str, Any]:
    """Each file's arrays, which have to be those that the index says. Raises RequestError."""
    stored: dict[str, Any] = {}
    for file in sorted(set(files.values())):
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise RequestError(f"{path} names {file}, which is no .safetensors file beside it")
        shard = _stored(path.with_name(file))
        if odd := sorted(shard.keys() ^ {name for name in files if files[name] == file}):
            what = "is not in" if odd[0] in files else "is not in the index, but in"
            raise RequestError(f"{odd[0]} {what} {path.with_name(file)}: is {path.name} another's?")
        stored |= shard
    return dict(sorted(stored.items()))


def _array(path: Path, name: str, dtype: str, shape: list[int], data: bytearray) -> Array:
    try:
        values = np.frombuffer(data, TYPES[dtype])
        if dtype == "BF16":  # the upper half of a float32
            values = (values.astype("<u4") << 16).view(BFLOAT16)
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


def initial_weights(shapes: Shapes, seed: int, dtype: str) -> Weights:
    """Initial weights: normal, the book's from N(0, 0.01²), biases 0; normalization: identity.

    They are rounded to float32 in either dtype, so that float64 and float32 runs start alike.
    """
    random = np.random.RandomState(seed)
    weights = {}
    for name, shape in shapes.items():
        if not name.endswith(".bias") and len(shape) > 1:
            drawn = deviation(name, shapes) * random.standard_normal(shape)
        else:
            ones = name.endswith((".weight", ".running_var"))
            drawn = np.ones(shape) if ones else np.zeros(shape)
        weights[name] = drawn.astype(np.float32).astype(dtype)
    return weights
