"""Fashion-MNIST from its public mirrors into the user's cache."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

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
"""Seconds that a mirror has for its answer, and for each further packet."""


class DownloadError(Exception):
    """No mirror gave the files; the message says why."""


def cache_folder() -> Path:
    """Where downloads are kept, in the platform's cache folder."""
    import pooch

    return Path(pooch.os_cache("multi-gpu-parity")) / "fashion-mnist"


def download(
    folder: Path, notify: Callable[[str], None], *, mirrors: Sequence[str] = MIRRORS
) -> None:
    """Fetches the files that `folder` lacks, each verified and renamed. Raises DownloadError."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # `notify` gets a line instead
    http = pooch.HTTPDownloader(timeout=TIMEOUT)
    reasons = []
    for mirror in mirrors:
        host = urlsplit(mirror).netloc
        notify(f"downloading Fashion-MNIST (30 MB) from {host} to {folder}")
        try:
            for name, known in SHA256.items():
                pooch.retrieve(mirror + name, known, name, folder, downloader=http)
            return
        except OSError as error:  # its response is None if the network failed
            unanswered = getattr(error, "response", error) is None
            reasons.append(f"{host}: {'it does not answer' if unanswered else error}")
        except ValueError:
            reasons.append(f"{host}: the SHA-256 of its {name} is not that of Fashion-MNIST")
    raise DownloadError("; ".join(reasons))
