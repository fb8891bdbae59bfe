"""Mutations of bytes, whatever they mean."""

import pickle
from random import Random
from typing import Final

PICKLED: Final = (
    b"cos\ngetcwd\n(tR.",
    pickle.dumps(print, protocol=4),
    b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128)
    + pickle.dumps([print]),
)
"""Harmless things that only a reader that unpickles would make."""

WORDS: Final = (b"\0", b"\xff", b"\0" * 8, b"\xff" * 8, b"\x1f\x8b\x08", b"PK\x03\x04", *PICKLED)

EDGES: Final = (
    *(0, 1),
    *(2**bits - less for bits in (7, 8, 15, 16, 30, 31, 32, 60, 63, 64) for less in (0, 1)),
)
"""Where lengths overflow, or promise too much."""


def change(content: bytes, rng: Random) -> bytes:
    """Some bytes changed, cut out, put in, repeated or cut off; or all of them, for a pickle."""
    if rng.random() < 0.02:
        return rng.choice(PICKLED)
    start = rng.randrange(len(content) + 1)
    end = min(len(content), start + rng.choice((0, 1, 1, 2, 4, 8, rng.randrange(64))))
    before, part, after = content[:start], content[start:end], content[end:]
    size = len(part)
    edge = (rng.choice(EDGES) % 256**size).to_bytes(size, rng.choice(("little", "big")))
    flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in part)
    instead = (b"", part * 2, part * 100, rng.choice(WORDS) + part, rng.randbytes(size + 1))
    return before + rng.choice((*instead, edge, edge, flipped)) + rng.choice((after,) * 6 + (b"",))
