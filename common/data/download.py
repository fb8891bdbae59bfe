"""Fashion-MNIST from its public mirrors into the user's cache."""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from common.base.errors import RequestError
from common.base.files import sha256
from common.terminal.command import path as as_path

SHA256: Final = {
    f"{name}-ubyte.gz": digest
    for name, digest in {
        "train-images-idx3": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }.items()
}
"""The four files of Fashion-MNIST, bit for bit as its authors published them."""

MIRRORS: Final = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)

TIMEOUT: Final = 10.0
"""Seconds that all mirrors together have to answer, and one for each further packet."""

VARIABLE: Final = "FASHION_MNIST_DIR"
"""Names the folder of Fashion-MNIST; empty: there is none, and none is downloaded."""


class DownloadError(Exception):
    """No mirror gave the files; the message says why."""


def cache_folder() -> Path:
    """Where downloads are kept, in the platform's cache folder."""
    import pooch

    return Path(pooch.os_cache("multi-gpu-parity")) / "fashion-mnist"


def located(data_dir: Path | None, notify: Callable[[str], None]) -> Path:
    """The folder with the four files, intact. Raises RequestError or DownloadError."""
    source, named = "--data-dir", data_dir
    if named is None and (variable := os.environ.get(VARIABLE)) is not None:
        if not variable:
            raise DownloadError(f"{VARIABLE} is empty")
        source, named = VARIABLE, as_path(variable)
    folder = named or cache_folder()
    for path in (folder / name for name in SHA256):
        try:
            intact = path.is_file() and sha256(path) == SHA256[path.name]
        except OSError as error:
            raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
        if not intact and named is None:
            download(folder, notify)
            break
        if not path.is_file():
            raise RequestError(f"{source}: there is no {path.name} in {folder}")
        if not intact:
            raise RequestError(f"{path}: its SHA-256 is not that of Fashion-MNIST; fetch it again")
    return folder


def decide() -> str:
    """Decides on the data of all runs that this process starts, and says so on standard error.

    Returns the folder of Fashion-MNIST, or "" if it cannot be had. This becomes the value of
    `VARIABLE`, unless it has one: no run asks mirrors again, or has other data.
    """
    if VARIABLE not in os.environ:
        notify = partial(print, file=sys.stderr, flush=True)
        try:
            os.environ[VARIABLE] = str(located(None, notify))
            notify(f"all runs train on Fashion-MNIST, which is in {os.environ[VARIABLE]}")
        except (DownloadError, RuntimeError) as error:  # RuntimeError: no home folder
            os.environ[VARIABLE] = ""
            notify(f"all runs train on drawn images: no Fashion-MNIST here ({error})")
    return os.environ[VARIABLE]


def answering(mirrors: Sequence[str]) -> Iterator[str]:
    """The mirrors that answer in time, the fastest first: all are asked at once."""
    import requests

    def ask(mirror: str) -> str:
        try:
            requests.head(mirror + next(iter(SHA256)), timeout=TIMEOUT)
        except OSError:
            return ""
        return mirror

    deadline = time.monotonic() + TIMEOUT
    # Threads, as a notebook's framework has some already: such a process must not fork.
    with ThreadPool(len(mirrors)) as pool, suppress(multiprocessing.TimeoutError):
        answers = pool.imap_unordered(ask, mirrors)
        for _ in mirrors:
            if mirror := answers.next(max(0, deadline - time.monotonic())):
                yield mirror


def download(
    folder: Path, notify: Callable[[str], None], *, mirrors: Sequence[str] = MIRRORS
) -> None:
    """Fetches the files that `folder` lacks, each verified and renamed. Raises DownloadError."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # `notify` gets a line instead
    http = pooch.HTTPDownloader(timeout=TIMEOUT)
    hosts = {mirror: urlsplit(mirror).netloc for mirror in mirrors}
    reasons = dict.fromkeys(hosts.values(), "it does not answer")
    for mirror in answering(mirrors):
        host = hosts[mirror]
        notify(f"downloading Fashion-MNIST (30 MB) from {host} to {folder}")
        try:
            for name, known in SHA256.items():
                pooch.retrieve(mirror + name, known, name, folder, downloader=http)
            return
        except OSError as error:
            if getattr(error, "response", error) is not None:  # else the network failed
                reasons[host] = str(error)
        except ValueError:
            reasons[host] = f"the SHA-256 of its {name} is not that of Fashion-MNIST"
    raise DownloadError("; ".join(f"{host}: {why}" for host, why in reasons.items()))
