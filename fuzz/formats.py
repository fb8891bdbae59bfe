"""Mutations of each format: headers are changed as what they are, and digests mended after it."""

import gzip
import json
import struct
import zlib
from hashlib import sha256
from random import Random
from typing import Any, Final

from common.records.record import Record
from common.records.store import seal
from fuzz import bytewise, trees
from fuzz.parts import joined, parted

TENSORS: Final = "run.safetensors"
"""The name of a run's tensors, beside its record."""

ELSEWHERE: Final = (
    *("../outside.safetensors", "x/../../outside.safetensors", "/etc/hostname", "/dev/zero"),
    *("run.json", "..", "", "/", "\0", "\ud800", "x" * 300),
)
"""Names of tensors that are not beside their record, or are none."""


def idx(content: bytes, rng: Random) -> bytes:
    """An IDX file with another header or body, or something else compressed."""
    if rng.random() < 0.3:
        return bytewise.change(content, rng)
    plain = _decompressed(content)
    how = rng.randrange(5)
    if how < 3:
        place = 4 * rng.randrange(4)
        size = rng.choice((*bytewise.EDGES, len(plain) - 8, 3, 5, 28))
        plain = plain[:place] + struct.pack(">I", size % 2**32) + plain[place + 4 :]
    elif how == 3:
        plain = bytes([0, 0, rng.choice((8, 9, 13)), rng.randrange(256)]) + plain[4:]
    else:
        plain = bytewise.change(plain, rng)
    if rng.random() < 0.001:
        plain += bytes(10**6)
    return gzip.compress(plain, 1, mtime=0) if rng.random() < 0.4 else plain


def safetensors(content: bytes, rng: Random) -> bytes:
    """A file of tensors with another header, another length of it, or other bytes."""
    if rng.random() < 0.2:
        return bytewise.change(content, rng)
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    try:
        tree = json.loads(header)
        for _ in range(rng.choice((1, 1, 2))):
            body = _change_tensor(tree, body, rng) if rng.random() < 0.4 else body
            tree = tree if rng.random() < 0.5 else trees.changed(tree, rng)
        header = trees.written(tree, rng)
    except (ValueError, RecursionError):
        return bytewise.change(content, rng)
    size = len(header)
    if rng.random() < 0.1:
        size = rng.choice((*bytewise.EDGES, size + 1, size - 1, size + len(body), 10**8, 10**8 + 1))
    return struct.pack("<Q", size % 2**64) + header + body


def run(content: bytes, rng: Random) -> bytes:
    """A record or its tensors changed, and mostly the digests that follow from them."""
    record, tensors = parted(content)
    if rng.random() < 0.5:
        record = trees.change(record, rng)
    else:
        tensors = safetensors(tensors, rng)
    if rng.random() < 0.6:
        record = vouched(record, tensors, rng.choice((*[TENSORS] * 9, rng.choice(ELSEWHERE))))
    return joined(record, tensors)


def record(content: bytes, rng: Random) -> bytes:
    """A record changed, and mostly sealed anew."""
    changed = trees.change(content, rng)
    return sealed(changed) if rng.random() < 0.3 else changed


def vouched(content: bytes, tensors: bytes, name: str = TENSORS) -> bytes:
    """The record that names these tensors, by this name, and has their digest."""
    try:
        tree = json.loads(content)
        tree["tensors"] = {"file": name, "sha256": sha256(tensors).hexdigest()}
        return sealed(json.dumps(tree).encode())
    except (ValueError, TypeError, LookupError, RecursionError):
        return content


def sealed(content: bytes) -> bytes:
    """The record with the digest of all that it says, if it is one."""
    try:
        tree = json.loads(content)
        tree["sha256"] = seal(Record.model_validate(tree))
        return json.dumps(tree).encode()
    except Exception:  # whatever is wrong with it, the reader shall see
        return content


def _change_tensor(tree: Any, body: bytes, rng: Random) -> bytes:
    """Another shape of one tensor, with offsets and bytes that may suit it."""
    tensors = (
        [each for each in tree.values() if isinstance(each, dict)] if isinstance(tree, dict) else []
    )
    if not tensors:
        return body
    tensor = rng.choice(tensors)
    tensor["shape"] = [
        rng.choice((0, 1, 1, 2, 3, 4, 2**31, 2**60, 2**63)) for _ in range(rng.randrange(4))
    ]
    if rng.random() < 0.3:
        tensor["shape"] = [1] * rng.choice((30, 33, 64, 65))
    tensor["dtype"] = rng.choice(
        ("F32", "F64", "F16", "U8", "BOOL", "BF16", "F4", "C64", "F8_E5M2", "I64")
    )
    if rng.random() < 0.5:  # alone, it may well be right
        for name in [name for name, each in tree.items() if each is not tensor]:
            del tree[name]
        body = bytes(rng.choice((0, 1, 4, 8, 16, 64)))
        tensor["data_offsets"] = [0, len(body)]
    return body


def _decompressed(content: bytes) -> bytes:
    try:
        return (
            zlib.decompressobj(31).decompress(content, 2**16) if content[:1] == b"\x1f" else content
        )
    except zlib.error:
        return content
