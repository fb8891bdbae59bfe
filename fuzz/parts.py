"""Several files as one input, and apart again."""

import struct


def joined(*files: bytes) -> bytes:
    """One input of several files: each but the last after its length in four bytes."""
    *first, last = files
    return b"".join([*(struct.pack("<I", len(each)) + each for each in first), last])


def parted(content: bytes, count: int = 2) -> list[bytes]:
    """The files of an input; whatever the bytes say, there are so many."""
    found = []
    for _ in range(count - 1):
        length = int.from_bytes(content[:4], "little")
        found.append(content[4 : 4 + length])
        content = content[4 + length :]
    return [*found, content]
