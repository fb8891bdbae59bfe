"""Fashion-MNIST from its public mirrors into the user's cache."""

import hashlib
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from common.base.files import destination, remove_temporaries, sha256, write_atomically
from common.data.receive import ANSWER_TIMEOUT, pieces
from common.terminal.progress import counted

SHA256: Final = {
    "train-images-idx3-ubyte.gz": (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
    ),
    "train-labels-idx1-ubyte.gz": (
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
    ),
}
"""The four files of Fashion-MNIST, bit for bit as its authors published them."""

MIRRORS: Final = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)


STALE: Final = 3600
"""Seconds in which nobody has written to a file: `ANSWER_TIMEOUT` ends whoever still would."""


class DownloadError(Exception):
    """No mirror gave the files; the message says why."""


def cache_folder() -> Path:
    """Where downloads are kept: in the user's cache folder, as the platform has it."""
    import pooch

    return Path(pooch.os_cache("multi-gpu-parity")) / "fashion-mnist"


def download(
    folder: Path,
    notify: Callable[[str], None],
    *,
    progress: bool,
    mirrors: Sequence[str] = MIRRORS,
) -> None:
    """Fetches what `folder` lacks of the four files, each checked and renamed into place.

    `notify` is told where from. Without a network, or where mirrors send next to nothing, it gives
    up within `ANSWER_TIMEOUT` seconds. Raises DownloadError.
    """
    reasons: list[str] = []
    _remove_stale(folder)
    for mirror in _as_they_answer(mirrors, reasons):
        notify(f"downloading Fashion-MNIST (30 MB) from {_host(mirror)} to {folder}")
        try:
            for name, known in SHA256.items():
                _fetch(mirror + name, known, folder, progress)
            return
        except (ValueError, OSError) as error:
            reasons.append(f"{_host(mirror)}: {error}")
    raise DownloadError("; ".join(reasons) or "no mirror answered")


def _remove_stale(folder: Path) -> None:
    """Removes what processes have left that were killed: each might leave a file more."""
    names = re.compile("|".join(map(re.escape, SHA256)))
    with suppress(OSError):  # there is no folder yet, or another process removes them, too
        remove_temporaries(folder, names, before=time.time() - STALE)


def _as_they_answer(mirrors: Sequence[str], reasons: list[str]) -> Iterator[str]:
    """The mirrors that can be reached, the quickest first; notes why the others cannot."""
    answers: queue.Queue[tuple[str, str]] = queue.Queue()

    # Daemons, because looking up a host name can hang for longer than anyone should wait.
    for mirror in mirrors:
        threading.Thread(target=_ask, args=(mirror, answers), daemon=True).start()
    deadline = time.monotonic() + ANSWER_TIMEOUT
    for _ in mirrors:
        try:
            mirror, trouble = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            reasons.append(f"the other mirrors did not answer within {ANSWER_TIMEOUT:.0f} s")
            return
        if trouble:
            reasons.append(f"{_host(mirror)}: {trouble}")
        else:
            yield mirror


def _ask(mirror: str, answers: "queue.Queue[tuple[str, str]]") -> None:
    import requests

    try:
        url = mirror + next(iter(SHA256))
        requests.head(url, timeout=ANSWER_TIMEOUT, allow_redirects=True).raise_for_status()
    except requests.ConnectionError:
        answers.put((mirror, "cannot be reached"))
    except (ValueError, OSError) as error:
        answers.put((mirror, str(error)))
    else:
        answers.put((mirror, ""))


def _fetch(url: str, known: str, folder: Path, progress: bool) -> None:
    path = destination(folder / url.rsplit("/", 1)[1])
    if not (path.is_file() and sha256(path) == known):
        write_atomically(path, partial(_receive, url, known, progress))


def _receive(url: str, known: str, progress: bool, temporary: Path) -> None:
    """Writes what a mirror sends. Raises ValueError unless it is what is `known`."""
    state, name = hashlib.sha256(), url.rsplit("/", 1)[1]
    with temporary.open("wb") as file:
        for piece in counted(pieces(url), name, shown=progress):
            state.update(piece)
            file.write(piece)
    if state.hexdigest() != known:
        raise ValueError(f"the hash of its {name} is not that of Fashion-MNIST")


def _host(mirror: str) -> str:
    return urlsplit(mirror).netloc
