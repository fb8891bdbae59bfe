"""A reader for IDX, the format of MNIST and Fashion-MNIST, plain or compressed with gzip.

A file is two zero bytes, a type code, the number of dimensions, each dimension's size as a
big-endian 32-bit integer, and the elements in row-major order
(http://yann.lecun.com/exdb/mnist/, "the IDX file format").
"""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
from numpy.typing import NDArray

from common.base.errors import RequestError

UNSIGNED_BYTE: Final = 0x08

LARGEST: Final = 1 << 30
"""No file of more elements is read: a damaged header must not exhaust the memory."""

PIECE: Final = 1 << 20
"""Bytes that are asked for at once. Python makes room for what is asked for, not what is there."""


def read_idx(path: Path, dimensions: int, first: int | None = None) -> NDArray[np.uint8]:
    """The unsigned bytes of an IDX file, in `dimensions` dimensions.

    `first`: so many of the first dimension, or as many as there are; None: all of the file. Raises
    RequestError with the file's name and what was expected.
    """
    try:
        with path.open("rb") as plain:
            compressed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if compressed else plain
            return parse_idx(stream, str(path), dimensions, first)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RequestError(f"{path}: cannot be decompressed ({error}); fetch it anew") from None
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None


def parse_idx(
    stream: BinaryIO, name: str, dimensions: int, first: int | None = None
) -> NDArray[np.uint8]:
    """Like `read_idx`, from a stream; `name` stands for it in error messages."""
    shape = _read_shape(stream, name, dimensions)
    claimed = math.prod(max(size, 1) for size in shape)  # NumPy minds huge sizes beside a 0, too
    if claimed > LARGEST:
        raise RequestError(f"{name}: claims {claimed} elements, expected at most {LARGEST}")
    there = shape[0]
    if first is not None:
        shape = (min(first, there), *shape[1:])
    expected = math.prod(shape)
    content = _read(stream, expected + (shape[0] == there))  # of a whole file nothing may follow
    if len(content) != expected:
        found = f"{len(content)} bytes" if len(content) < expected else "more"
        raise RequestError(f"{name}: holds {found} after its header, expected {expected} bytes")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read(stream: BinaryIO, most: int) -> bytes:
    """At most so many bytes: as many as there are, whatever the header promises."""
    content = bytearray()
    while len(content) < most and (piece := stream.read(min(PIECE, most - len(content)))):
        content += piece
    return bytes(content)


def _read_shape(stream: BinaryIO, name: str, dimensions: int) -> tuple[int, ...]:
    magic = stream.read(4)
    if len(magic) < 4:
        raise RequestError(f"{name}: ends within its first four bytes, expected an IDX header")
    if magic[:2] != b"\0\0":
        raise RequestError(f"{name}: starts with {magic.hex()}, expected 0000 as in IDX files")
    if magic[2] != UNSIGNED_BYTE:
        raise RequestError(f"{name}: has type {magic[2]:#04x}, expected 0x08, unsigned bytes")
    if magic[3] != dimensions:
        raise RequestError(f"{name}: has {magic[3]} dimensions, expected {dimensions}")
    sizes = stream.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise RequestError(f"{name}: ends within its header, expected {dimensions} sizes")
    return struct.unpack(f">{dimensions}I", sizes)
