"""The data sets, and their minibatches in the same order in every framework."""

import gzip
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.base.arrays import Array
from common.base.errors import RequestError
from common.data.download import SHA256, DownloadError, located
from common.data.sums import NO_LABEL, sums
from common.data.synthetic import synthetic

Bytes = NDArray[np.uint8]
Batch = tuple[Bytes, Bytes]
"""Images (n, 28, 28) and labels (n,), or texts and labels (n, s), as bytes."""

First = tuple[int | None, int | None]
"""The numbers of examples for training and for testing; None: all."""


@dataclass(frozen=True)
class Dataset:
    """Images (n, 28, 28) and labels (n,) as bytes, for training and for testing.

    Or texts (n, s) and labels (n, s), of which some are `NO_LABEL`.
    """

    name: str
    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes

    def first(self, train_examples: int | None, test_examples: int | None) -> "Dataset":
        """The first examples of each part; None: all. Raises RequestError if there are fewer."""
        counts = {"--train-examples": train_examples, "--test-examples": test_examples}
        for (flag, count), size in zip(counts.items(), self.sizes(), strict=True):
            if count is not None and count > size:
                raise RequestError(f"{flag} {count}: {self.name} has only {size}")
        train = self.train_images[:train_examples], self.train_labels[:train_examples]
        test = self.test_images[:test_examples], self.test_labels[:test_examples]
        return Dataset(self.name, *train, *test)

    def sizes(self) -> tuple[int, int]:
        return len(self.train_labels), len(self.test_labels)

    def digest(self) -> str:
        state = hashlib.sha256()
        for part in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            state.update(str(part.shape).encode())
            state.update(np.ascontiguousarray(part).data)
        return state.hexdigest()


def load(
    name: str, data_dir: Path | None, notify: Callable[[str], None], first: First = (None, None)
) -> Dataset:
    """The `first` examples of a data set; "auto": "fashion-mnist" if it is there, else "synthetic".

    Fashion-MNIST is read from `data_dir`, else `$FASHION_MNIST_DIR` (empty: there is none), else
    the user's cache, else downloaded; a named folder without the right files is an error.
    `notify` gets a line on a download and on falling back. Raises RequestError.
    """
    if name == "sums":
        return Dataset(name, *sums(first)).first(*first)
    if name != "synthetic":
        try:
            return read_fashion_mnist(located(data_dir, notify), first).first(*first)
        except (DownloadError, RuntimeError) as error:  # RuntimeError: no home folder
            if name == "fashion-mnist":
                raise RequestError(
                    f"cannot download Fashion-MNIST ({error}); "
                    "name a folder that has it with --data-dir, or use --dataset synthetic"
                ) from None
            notify(f"FALLING BACK to the synthetic data set: no Fashion-MNIST here ({error})")
    return Dataset("synthetic", *synthetic(first=first)).first(*first)


def read_fashion_mnist(folder: Path, first: First = (None, None)) -> Dataset:
    """The `first` examples of each part in `folder`, whose files are intact."""
    parts = []
    for name in SHA256:
        count, images = first[name.startswith("t10k")], "images" in name
        with gzip.open(folder / name) as file:
            # The header has four bytes, and four more for each dimension.
            file.seek(16 if images else 8)
            content = file.read(-1 if count is None else count * (28 * 28 if images else 1))
        part = np.frombuffer(content, np.uint8)
        parts.append(part.reshape(-1, 28, 28) if images else part)
    return Dataset("fashion-mnist", *parts)


def pixels(images: Bytes, dtype: str) -> Array:
    """Images (n, 28, 28) of bytes as (n, 1, 28, 28) of `dtype` in 0..1."""
    scaled: Array = images[:, np.newaxis].astype(dtype) / np.dtype(dtype).type(255)
    return scaled


def inputs(examples: Bytes, dtype: str) -> Array:
    """What a net takes: pixels of images, or the tokens (n, s) of texts in 64 bits."""
    return pixels(examples, dtype) if examples.ndim == 3 else examples.astype(np.int64)


def numbers(examples: Bytes, labels: Bytes, dtype: str) -> tuple[Array, Array]:
    """A minibatch for training, with 64-bit labels, -1 for none."""
    wide = labels.astype(np.int64)
    return inputs(examples, dtype), np.where(wide == NO_LABEL, -1, wide)


def minibatches(
    images: Bytes, labels: Bytes, batch_size: int, *, seed: int, epoch: int, skip: int = 0
) -> Iterator[Batch]:
    """The minibatches of an epoch, counted from 0, but the first `skip`; the last may be short.

    The streams of `RandomState` are frozen: every NumPy gives the same order.
    """
    order = np.random.RandomState([seed, epoch]).permutation(len(images))
    for start in range(skip * batch_size, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield images[chosen], labels[chosen]
