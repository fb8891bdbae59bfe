"""What a server sends, for as long as it sends enough: no server can keep a command waiting."""

import queue
import threading
import time
from collections.abc import Iterator
from typing import Final

ANSWER_TIMEOUT: Final = 10.0
"""Seconds in which a server must have answered, and have sent `LEAST` bytes, again and again."""

LEAST: Final = 10_000
"""At 1 kB a second the files would take more than eight hours."""

MOST: Final = 1 << 26
"""Bytes, more than twice the largest file: an endless answer must not fill the disk."""

REDIRECTS: Final = 5
"""More than any mirror needs; a circle of them has no end."""

PIECE: Final = 1 << 12


def pieces(url: str) -> Iterator[bytes]:
    """What a server sends, piece by piece.

    Raises OSError if it does not answer well, and ValueError if it sends too slowly or too much.
    """
    # A thread listens: with a byte now and then, a server keeps waiting whoever reads.
    arrived: queue.Queue[bytes | Exception] = queue.Queue()
    over = threading.Event()
    threading.Thread(target=_listen, args=(url, arrived, over), daemon=True).start()
    limit, enough = time.monotonic() + ANSWER_TIMEOUT, 0
    try:
        while piece := _next(arrived, limit):
            yield piece
            enough += len(piece)
            if enough >= LEAST:
                limit, enough = time.monotonic() + ANSWER_TIMEOUT, 0
    finally:
        over.set()


def _next(arrived: "queue.Queue[bytes | Exception]", limit: float) -> bytes:
    """What has arrived next, empty at the end. Raises ValueError if nothing has until `limit`."""
    try:
        found = arrived.get(timeout=max(0.0, limit - time.monotonic()))
    except queue.Empty:
        raise ValueError(f"it sent fewer than {LEAST:,} bytes in {ANSWER_TIMEOUT:.0f} s") from None
    if isinstance(found, Exception):
        raise found
    return found


def _listen(url: str, arrived: "queue.Queue[bytes | Exception]", over: threading.Event) -> None:
    try:
        for piece in _answer(url):
            arrived.put(piece)
            if over.is_set():
                return
        arrived.put(b"")
    except Exception as error:  # for whoever waits
        arrived.put(error)


def _answer(url: str) -> Iterator[bytes]:
    import requests

    with requests.Session() as session:
        session.max_redirects = REDIRECTS
        with session.get(url, stream=True, timeout=ANSWER_TIMEOUT) as response:
            response.raise_for_status()
            size = 0
            for piece in response.iter_content(PIECE):
                size += len(piece)
                if size > MOST:
                    raise ValueError(f"it sent more than {MOST:,} bytes")
                yield piece
