"""Where the data comes from, what is refused, and what is made of the files: minibatches."""

import gzip
import hashlib
import os
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.errors import RequestError
from common.data.dataset import Dataset, load, minibatches, numbers
from common.data.download import SHA256, VARIABLE, DownloadError, decide
from common.data.sums import NO_LABEL, TOKENS, sums, text
from common.data.synthetic import synthetic
from common.training.loop import accuracy

WHOLE = "0687274c3ea629c08fb5d2f5689c444997e3ac3b3742e42fa5acb66db64290a5"
RANDOM = np.random.RandomState(0)
DATA = Dataset(
    "fashion-mnist",
    RANDOM.randint(0, 256, (500, 28, 28)).astype(np.uint8),
    RANDOM.randint(0, 10, 500).astype(np.uint8),
    np.full((5, 28, 28), 7, np.uint8),
    np.arange(5, dtype=np.uint8),
)
FIELDS = ("train_images", "train_labels", "test_images", "test_labels")
TRAIN_IMAGES, *_, TEST_LABELS = SHA256


def content(name: str) -> bytes:
    """The header and the bytes of an IDX file."""
    array = getattr(DATA, FIELDS[list(SHA256).index(name)])
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def write(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in SHA256:
        (folder / name).write_bytes(content(name))
    return folder


class Places:
    """Every place where Fashion-MNIST may be, none of which has it."""

    def __init__(self, root: Path) -> None:
        self.flag, self.variable, self.cache = root / "flag", root / "variable", root / "cache"
        self.notices: list[str] = []
        self.asked, self.online = 0, False

    def download(self, folder: Path, notify: Callable[[str], None]) -> None:
        self.asked += 1
        if not self.online:
            raise DownloadError("no mirror answered")
        write(folder)

    def load(self, name: str = "auto", data_dir: Path | None = None) -> str:
        """The name of what is found, which is whole if it is no synthetic data."""
        found = load(name, data_dir, self.notices.append)
        assert found.name == "synthetic" or found.digest() == DATA.digest()
        return found.name


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places(tmp_path)
    for name in SHA256:
        monkeypatch.setitem(SHA256, name, hashlib.sha256(content(name)).hexdigest())
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setattr("common.data.download.cache_folder", lambda: made.cache)
    monkeypatch.setattr("common.data.download.download", made.download)
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 20, 10))
    return made


def test_it_is_looked_for_in_each_place_before_the_next(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.online = True
    for _ in range(2):  # the second time it is in the cache
        assert places.load() == "fashion-mnist"
    assert (places.asked, places.notices) == (1, [])
    (places.cache / TEST_LABELS).write_bytes(b"damaged")
    write(places.variable)
    monkeypatch.setenv("HOME", str(places.variable.parent))
    monkeypatch.setenv("FASHION_MNIST_DIR", f"~/{places.variable.name}")
    assert places.load() == "fashion-mnist"
    (places.variable / TEST_LABELS).write_bytes(b"damaged")
    assert places.load(data_dir=write(places.flag)) == "fashion-mnist"
    assert places.load("synthetic", places.flag) == "synthetic"
    assert places.asked == 1


@pytest.mark.parametrize("place", ["flag", "variable"])
def test_a_named_folder_that_does_not_serve_is_an_error(
    places: Places, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    write(places.cache)
    folder = getattr(places, place)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(folder))
    data_dir = folder if place == "flag" else None
    with pytest.raises(RequestError, match=f"there is no {TRAIN_IMAGES} in {folder}"):
        places.load(data_dir=data_dir)
    (write(folder) / TEST_LABELS).write_bytes(b"damaged")
    with pytest.raises(RequestError, match=f"{folder / TEST_LABELS}: its SHA-256 is not"):
        places.load(data_dir=data_dir)


def test_auto_falls_back_with_a_reason(places: Places) -> None:
    assert places.load("auto") == "synthetic"
    assert places.notices[-1].startswith("FALLING BACK to the synthetic data set")
    assert "no mirror answered" in places.notices[-1]


@pytest.mark.parametrize("online", [True, False])
def test_what_is_decided_once_holds_for_all_runs_that_follow(
    places: Places,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    online: bool,
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    places.online = online
    folder = decide()
    assert folder == (str(places.cache) if online else "")
    found = "Fashion-MNIST, which is in" if online else "drawn images: no Fashion-MNIST here"
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert said.startswith(f"all runs train on {found}")
    for path in places.cache.glob("*"):
        path.unlink()
    places.online = not online  # a network that comes or goes mixes no data
    assert decide() == folder
    if online:
        with pytest.raises(RequestError, match=f"{VARIABLE}: there is no {TRAIN_IMAGES}"):
            places.load()
    else:
        assert places.load() == "synthetic"
        with pytest.raises(RequestError, match=f"cannot download Fashion-MNIST .{VARIABLE} is em"):
            places.load("fashion-mnist")
    assert (places.asked, capsys.readouterr()) == (1, ("", ""))
    write(places.variable)
    os.environ[VARIABLE] = str(places.variable)  # what a user has set decides
    assert (decide(), places.load()) == (str(places.variable), "fashion-mnist")


def test_the_first_examples_are_taken(places: Places) -> None:
    found = load("fashion-mnist", write(places.flag), print)
    for first in ((9, 2), (None, 0), (500, None)):
        sizes = first[0], first[0], first[1], first[1]
        for field, n in zip(FIELDS, sizes, strict=True):
            assert np.array_equal(getattr(found.first(*first), field), getattr(DATA, field)[:n])


@given(field=st.sampled_from(FIELDS), place=st.integers(0, 2**32), change=st.integers(1, 255))
def test_the_digest_changes_with_any_byte_and_with_shapes(
    field: str, place: int, change: int
) -> None:
    changed = getattr(DATA, field).copy()
    changed.flat[place % changed.size] ^= change
    assert replace(DATA, **{field: changed}).digest() != DATA.digest()
    images = DATA.test_images
    assert replace(DATA, test_images=images.reshape(5, 14, 56)).digest() != DATA.digest()
    assert replace(DATA, test_images=np.asfortranarray(images)).digest() == DATA.digest()


def test_synthetic_data_has_the_same_bytes_on_every_machine() -> None:
    content = b"".join(part.tobytes() for part in synthetic())
    assert hashlib.sha256(content).hexdigest() == WHOLE


def test_each_sum_is_there_once_and_only_its_answer_is_to_be_predicted() -> None:
    X, y, more_texts, more_labels = sums()
    found = set()
    for tokens, labels in zip(
        np.concatenate([X, more_texts]), np.concatenate([y, more_labels]), strict=True
    ):
        line = "".join(TOKENS[token] for token in tokens).rstrip("\n")
        question, _, answer = line.partition("=")
        a, b = map(int, question.split("+"))
        found.add((a, b))
        assert line + "\n" == text(a, b)
        assert int(answer[::-1]) == a + b
        due = np.full(len(labels), NO_LABEL)
        due[len(question) : len(line)] = [TOKENS.index(sign) for sign in answer + "\n"]
        assert labels.tolist() == due.tolist()
    assert len(found) == 100 * 100
    assert [len(part) for part in (X, y, more_texts, more_labels)] == [8000, 8000, 2000, 2000]


def test_an_answer_is_right_if_all_of_it_is() -> None:
    X, y = (part[:3] for part in sums()[:2])
    predictions = np.where(y == NO_LABEL, 0, y)
    assert accuracy(predictions, y) == 1
    place = np.flatnonzero(y[1] != NO_LABEL)[-1]
    predictions[1, place] = (predictions[1, place] + 1) % len(TOKENS)
    assert accuracy(predictions, y) == 2 / 3
    tokens, labels = numbers(X, y, "float32")
    assert tokens.dtype == labels.dtype == np.int64
    assert ((labels == -1) == (y == NO_LABEL)).all()


sizes, seeds, epochs = st.integers(1, 200), st.integers(0, 2**32 - 1), st.integers(0, 50)


@given(n=sizes, batch_size=sizes, seed=seeds, epoch=epochs, skip=st.integers(0, 3))
def test_the_order_is_the_permutation_of_seed_and_epoch(
    n: int, batch_size: int, seed: int, epoch: int, skip: int
) -> None:
    labels = np.arange(n, dtype=np.uint8)
    images = np.tile(labels[:, None, None], (1, 28, 28))  # each tells its own place
    how = {"batch_size": batch_size, "seed": seed, "epoch": epoch}
    batches = list(minibatches(images, labels, **how))
    order = np.concatenate([y for _, y in batches])
    assert order.tolist() == np.random.RandomState([seed, epoch]).permutation(n).tolist()
    assert [len(y) for _, y in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert len(batches[-1][1]) == (n % batch_size or batch_size)
    for X, y in batches:
        assert np.array_equal(X, np.broadcast_to(y[:, None, None], (len(y), 28, 28)))
    rest = [y.tolist() for _, y in minibatches(images, labels, **how, skip=skip)]
    assert rest == [y.tolist() for _, y in batches[skip:]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pixels_are_bytes_over_255_rounded_once(dtype: str) -> None:
    images = np.resize(np.arange(256, dtype=np.uint8), (2, 28, 28))
    X, y = numbers(images, np.arange(2, dtype=np.uint8), dtype)
    assert (X.shape, X.dtype, y.dtype) == ((2, 1, 28, 28), np.dtype(dtype), np.dtype(np.int64))
    assert np.array_equal(X[:, 0], (images / np.float64(255)).astype(dtype))


def test_images_stay_bytes_until_their_minibatch_is_gathered() -> None:
    images, labels = np.zeros((20_000, 28, 28), np.uint8), np.zeros(20_000, np.uint8)
    tracemalloc.start()
    next(minibatches(images, labels, batch_size=10, seed=0, epoch=0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < images.nbytes / 4
