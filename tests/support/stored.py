"""Writes `.safetensors` files of types that NumPy lacks."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.base.arrays import Array


def save_raw(path: Path, header: Mapping[str, Any], data: bytes) -> Path:
    """Writes a file with this header and these bytes after it."""
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def save_bfloat16(path: Path, weights: Mapping[str, Array]) -> Path:
    """Writes the weights in bfloat16, rounded towards 0."""
    header, data = {}, b""
    for name, values in weights.items():
        start, bits = len(data), values.astype("<f4").ravel().view("<u4")
        data += (bits >> 16).astype("<u2").tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": values.shape,
            "data_offsets": [start, len(data)],
        }
    return save_raw(path, header, data)
