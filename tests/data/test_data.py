"""Where the data comes from, what is refused, and what is made of the files."""

import gzip
import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from common.base.errors import RequestError
from common.data.dataset import Dataset, load, read_fashion_mnist
from common.data.download import SHA256, DownloadError
from common.data.synthetic import synthetic

Bytes = NDArray[np.uint8]
DATA = Dataset(
    "fashion-mnist",
    np.arange(12 * 784, dtype=np.uint32).astype(np.uint8).reshape(12, 28, 28),
    np.arange(12, dtype=np.uint8) % 10,
    np.full((5, 28, 28), 7, np.uint8),
    np.arange(5, dtype=np.uint8),
)
FIELDS = ("train_images", "train_labels", "test_images", "test_labels")
TRAIN_IMAGES, TRAIN_LABELS, _, TEST_LABELS = SHA256


def idx(array: Bytes) -> bytes:
    """A file of the data set: its header, and its bytes in row-major order."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def write(folder: Path, data: Dataset = DATA) -> Path:
    folder.mkdir(parents=True)
    for name, field in zip(SHA256, FIELDS, strict=True):
        (folder / name).write_bytes(idx(getattr(data, field)))
    return folder


def spoil(folder: Path) -> Path:
    """Files that are well formed, but other than they should be."""
    return write(folder, replace(DATA, test_labels=DATA.test_labels[::-1]))


class Places:
    """Every place where Fashion-MNIST may be, none of which has it; notices are kept."""

    def __init__(self, root: Path) -> None:
        self.flag, self.variable, self.cache = root / "flag", root / "variable", root / "cache"
        self.notices: list[str] = []
        self.downloads = 0
        self.mirror: BaseException | None = DownloadError("no mirror answered")

    def download(self, folder: Path, notify: Callable[[str], None], *, progress: bool) -> None:
        self.downloads += 1
        if self.mirror is not None:
            raise self.mirror
        write(folder)

    def load(self, name: str = "auto", data_dir: Path | None = None) -> str:
        """The name of what is found, which is whole if it is no synthetic data."""
        found = load(name, data_dir, self.notices.append, progress=False)
        assert found.name == "synthetic" or found.digest() == DATA.digest()
        return found.name


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places(tmp_path)
    for name, field in zip(SHA256, FIELDS, strict=True):
        monkeypatch.setitem(SHA256, name, hashlib.sha256(idx(getattr(DATA, field))).hexdigest())
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setattr("common.data.dataset.cache_folder", lambda: made.cache)
    monkeypatch.setattr("common.data.dataset.download", made.download)
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 20, 10))
    return made


def test_it_is_looked_for_in_each_place_before_the_next(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.mirror = None
    assert places.load() == "fashion-mnist"
    assert places.downloads == 1
    assert places.load() == "fashion-mnist"  # now from the cache
    assert (places.downloads, places.notices) == (1, [])
    (places.cache / TEST_LABELS).write_bytes(b"damaged")
    write(places.variable)
    monkeypatch.setenv("HOME", str(places.variable.parent))
    monkeypatch.setenv("FASHION_MNIST_DIR", f"~/{places.variable.name}")
    assert places.load() == "fashion-mnist"
    (places.variable / TEST_LABELS).write_bytes(b"damaged")
    assert places.load(data_dir=write(places.flag)) == "fashion-mnist"
    assert places.downloads == 1


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
    spoil(folder)
    with pytest.raises(RequestError, match=f"{folder / TEST_LABELS}: its SHA-256 is not"):
        places.load(data_dir=data_dir)
    with pytest.raises(RequestError, match=r"cannot be read \(File name too long"):
        places.load(data_dir=Path("x" * 300))


def test_auto_falls_back_loudly_and_says_why_and_a_name_never_does(places: Places) -> None:
    assert places.load("auto") == "synthetic"
    assert places.notices[-1].startswith("FALLING BACK to the synthetic data set")
    assert "no mirror answered" in places.notices[-1]
    with pytest.raises(RequestError, match=r"no mirror answered.*--data-dir.*--dataset synthetic"):
        places.load("fashion-mnist")


def test_synthetic_looks_nowhere(places: Places) -> None:
    write(places.cache)
    assert places.load("synthetic") == "synthetic"
    assert (places.downloads, places.notices) == (0, [])


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    data = read_fashion_mnist(write(tmp_path / "data"))
    for field in FIELDS:
        assert getattr(data, field).dtype == np.uint8
        assert np.array_equal(getattr(data, field), getattr(DATA, field))


def test_of_files_so_many_examples_are_taken_as_are_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    for first in ((3, 2), (None, 0)):
        assert read_fashion_mnist(folder, first).digest() == DATA.first(*first).digest()
    assert read_fashion_mnist(folder, (99, 99)).digest() == DATA.digest()


def test_the_first_examples_are_read_without_the_others(tmp_path: Path) -> None:
    images = np.random.RandomState(0).randint(0, 256, (1000, 28, 28)).astype(np.uint8)
    folder = write(tmp_path / "data", replace(DATA, train_images=images))
    content = (folder / TRAIN_IMAGES).read_bytes()
    (folder / TRAIN_IMAGES).write_bytes(content[: len(content) // 2])
    assert np.array_equal(read_fashion_mnist(folder, (9, 2)).train_images, images[:9])


@pytest.mark.parametrize(("name", "there"), [("fashion-mnist", 12), ("synthetic", 20)])
def test_more_examples_than_there_are_are_refused(places: Places, name: str, there: int) -> None:
    folder = write(places.flag)
    with pytest.raises(RequestError, match=f"--train-examples 99: {name} has only {there}$"):
        load(name, folder, print, progress=False, first=(99, None))


def test_the_first_examples_are_taken_in_their_order() -> None:
    first = DATA.first(7, 2)
    assert np.array_equal(first.train_images, DATA.train_images[:7])
    assert first.train_labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert np.array_equal(first.test_images, DATA.test_images[:2])
    assert first.test_labels.tolist() == [0, 1]
    assert DATA.first(None, None).digest() == DATA.first(12, 5).digest() == DATA.digest()
    with pytest.raises(RequestError, match="--test-examples 6: fashion-mnist has only 5"):
        DATA.first(1, 6)


@given(field=st.sampled_from(FIELDS), place=st.integers(0, 2**32), change=st.integers(1, 255))
def test_the_digest_changes_with_any_byte(field: str, place: int, change: int) -> None:
    changed = getattr(DATA, field).copy()
    changed.flat[place % changed.size] ^= change
    assert replace(DATA, **{field: changed}).digest() != DATA.digest()


def test_the_digest_sees_shapes_and_not_how_the_memory_lies() -> None:
    images = DATA.test_images
    assert replace(DATA, test_images=images.reshape(5, 14, 56)).digest() != DATA.digest()
    assert replace(DATA, test_images=np.asfortranarray(images)).digest() == DATA.digest()
