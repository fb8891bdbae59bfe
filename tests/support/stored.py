"""Writes `.safetensors` files of types that NumPy lacks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.base.arrays import Array


def save_raw(path: Path, header: Mapping[str, Any], data: bytes) -> Path:
    """Writes a file with this header and these bytes after it."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def save_bfloat16(path: Path, weights: Mapping[str, Array]) -> Path:
    """Writes the weights in bfloat16, rounded towards 0."""
    header, data = {}, b""
    for name, values in weights.items():
        bits = values.astype("<f4").ravel().view("<u4") >> 16
        places = [len(data), len(data) + 2 * values.size]
        header[name] = {"dtype": "BF16", "shape": values.shape, "data_offsets": places}
        data += bits.astype("<u2").tobytes()
    return save_raw(path, header, data)
