"""IDX files: what is written comes back, and what is damaged is refused by name."""

import gzip
import io
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from bench.d2l_package import write
from common.base.errors import RequestError
from common.data.idx import LARGEST, PIECE, parse_idx, read_idx

Bytes = NDArray[np.uint8]


def header(*sizes: int, kind: int = 8, dimensions: int | None = None) -> bytes:
    count = len(sizes) if dimensions is None else dimensions
    return bytes([0, 0, kind, count]) + struct.pack(f">{len(sizes)}I", *sizes)


def idx(array: Bytes) -> bytes:
    return header(*array.shape) + array.tobytes()


LABELS = idx(np.arange(5, dtype=np.uint8))
IMAGES = idx(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
some_array = st.sampled_from([1, 3]).flatmap(
    lambda d: arrays.arrays(
        np.uint8, arrays.array_shapes(min_dims=d, max_dims=d, min_side=0, max_side=9)
    )
)


@given(array=some_array, compress=st.sampled_from([bytes, gzip.compress]))
def test_what_was_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, array: Bytes, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip"
    path.write_bytes(compress(idx(array)))
    found = read_idx(path, array.ndim)
    assert found.dtype == np.uint8
    assert found.shape == array.shape
    assert np.array_equal(found, array)


def test_sizes_are_big_endian_and_elements_in_row_major_order() -> None:
    content = bytes.fromhex("00000803 00000001 00000002 00000003 0a0b0c0d0e0f")
    assert parse_idx(io.BytesIO(content), "it", 3).tolist() == [[[10, 11, 12], [13, 14, 15]]]


FLAWS = {
    "wrong magic": (b"\0\1" + LABELS[2:], 1, "starts with 0001080.*, expected 0000"),
    "floating point": (header(5, kind=0x0D), 1, "type 0x0d, expected 0x08, unsigned bytes"),
    "images for labels": (IMAGES, 1, "has 3 dimensions, expected 1"),
    "labels for images": (LABELS, 3, "has 1 dimensions, expected 3"),
    "empty": (b"", 1, "first four bytes, expected an IDX header"),
    "within the magic": (LABELS[:3], 1, "first four bytes, expected an IDX header"),
    "within the sizes": (IMAGES[:15], 3, "within its header, expected 3 sizes"),
    "no body": (header(5), 1, "holds 0 bytes after its header, expected 5 bytes"),
    "a byte short": (IMAGES[:-1], 3, "holds 23 bytes after its header, expected 24 bytes"),
    "a byte too long": (LABELS + b"\0", 1, "holds more after its header, expected 5 bytes"),
    "above the limit": (header(LARGEST + 1), 1, f"{LARGEST + 1} elements, expected at most"),
    "product above the limit": (header(2**31, 2**31, 4), 3, f"expected at most {LARGEST}"),
    "nothing of an impossible size": (header(0, 2**32 - 1, 2**32 - 1), 3, "expected at most"),
}


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(("content", "dimensions", "complaint"), FLAWS.values(), ids=FLAWS.keys())
def test_a_flaw_is_named_with_the_file_and_what_was_expected(
    tmp_path: Path,
    content: bytes,
    dimensions: int,
    complaint: str,
    compress: Callable[[bytes], bytes],
) -> None:
    path = tmp_path / "flawed"
    path.write_bytes(compress(content))
    with pytest.raises(RequestError, match=complaint) as caught:
        read_idx(path, dimensions)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_truncated_gzip_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    path, whole = tmp_path / "cut.gz", gzip.compress(IMAGES)
    for length in range(2, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RequestError, match="cannot be decompressed") as caught:
            read_idx(path, 3)
        assert str(path) in str(caught.value)


def test_a_damaged_gzip_file_is_never_read_as_something_else(tmp_path: Path) -> None:
    path, whole = tmp_path / "damaged.gz", gzip.compress(IMAGES, mtime=0)
    for place in range(10, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(RequestError) as caught:
            read_idx(path, 3)
        assert str(path) in str(caught.value)


def test_a_header_that_claims_too_much_is_refused_before_anything_is_read() -> None:
    class Endless(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 <= size < 100
            return super().read(size)

    with pytest.raises(RequestError, match="expected at most"):
        parse_idx(Endless(header(2**32 - 1)), "it", 1)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_header_that_promises_much_takes_no_memory(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "promise"
    path.write_bytes(compress(header(LARGEST) + b"few"))
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match="holds 3 bytes after its header"):
            read_idx(path, 1)
        assert tracemalloc.get_traced_memory()[1] < 8 * PIECE
    finally:
        tracemalloc.stop()


def test_what_is_longer_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    path, values = tmp_path / "long", np.arange(2 * PIECE + 1, dtype=np.uint8)
    path.write_bytes(idx(values))
    assert np.array_equal(read_idx(path, 1), values)


def test_the_first_are_read_without_the_others(tmp_path: Path) -> None:
    array, path = np.arange(60, dtype=np.uint8).reshape(5, 3, 4), tmp_path / "x"
    path.write_bytes(idx(array) + b"more")
    assert all(np.array_equal(read_idx(path, 3, n), array[:n]) for n in range(5))
    with pytest.raises(RequestError, match="holds more after its header"):
        read_idx(path, 3, 5)
    path.write_bytes(gzip.compress(idx(array)[:50]))
    with pytest.raises(RequestError, match=r"holds 34 bytes .*, expected 36 bytes"):
        read_idx(path, 3, 3)


def test_a_path_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path / "missing", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "file" / "below", "Not a directory"),
    ):
        with pytest.raises(RequestError, match=f"cannot be read .*{reason}") as caught:
            read_idx(path, 1)
        assert str(path) in str(caught.value)


size = st.one_of(st.integers(0, 9), st.sampled_from([2**16, 2**31, 2**32 - 1]))
nearly_idx = st.builds(
    lambda sizes, body: header(*sizes) + body, st.lists(size, max_size=4), st.binary()
)
nearly_gzip = st.one_of(nearly_idx.map(gzip.compress), st.binary().map(b"\x1f\x8b\x08".__add__))


@given(content=st.one_of(st.binary(), nearly_idx, nearly_gzip), dimensions=st.integers(1, 3))
def test_arbitrary_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, dimensions: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary"
    path.write_bytes(content)
    found, complaint = None, ""
    try:
        found = read_idx(path, dimensions)
    except RequestError as error:
        complaint = str(error)
    if found is None:
        assert complaint.startswith(f"{path}: ")
    else:
        assert idx(found) == (gzip.decompress(content) if content[0] else content)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_the_benchmark_writes_is_read(tmp_path: Path, compressed: bool) -> None:
    rng = np.random.default_rng(8)
    images = rng.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.arange(5, dtype=np.uint8)
    write(tmp_path / "raw", images, labels, compressed=compressed)
    for part, count in (("train", 5), ("t10k", 1)):
        for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
            path = tmp_path / "raw" / f"{part}-{kind}-ubyte{'.gz' if compressed else ''}"
            assert (path.read_bytes()[:2] == b"\x1f\x8b") == compressed
            assert np.array_equal(read_idx(path, values.ndim), values[:count])
