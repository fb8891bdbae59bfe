"""Where the data comes from, and what is refused."""

import gzip
import hashlib
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
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
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = SHA256
PARTS = {
    TRAIN_IMAGES: DATA.train_images,
    TRAIN_LABELS: DATA.train_labels,
    TEST_IMAGES: DATA.test_images,
    TEST_LABELS: DATA.test_labels,
}


def idx(array: Bytes) -> bytes:
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def write(folder: Path, changes: dict[str, Bytes] | None = None) -> Path:
    folder.mkdir(parents=True)
    for name, array in {**PARTS, **(changes or {})}.items():
        (folder / name).write_bytes(idx(array))
    return folder


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

    def load(self, name: str = "auto", data_dir: Path | None = None) -> Dataset:
        return load(name, data_dir, self.notices.append, progress=False)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places(tmp_path)
    for name, array in PARTS.items():
        monkeypatch.setitem(SHA256, name, hashlib.sha256(idx(array)).hexdigest())
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setattr("common.data.dataset.cache_folder", lambda: made.cache)
    monkeypatch.setattr("common.data.dataset.download", made.download)
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 20, 10))
    return made


def spoil(folder: Path) -> Path:
    """Files that are well formed, but other than they should be."""
    return write(folder, {TEST_LABELS: DATA.test_labels[::-1]})


def is_whole(data: Dataset) -> bool:
    return data.name == "fashion-mnist" and data.digest() == DATA.digest()


def test_the_flag_comes_before_the_variable(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASHION_MNIST_DIR", str(spoil(places.variable)))
    assert is_whole(places.load(data_dir=write(places.flag)))


def test_the_variable_comes_before_the_cache(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(places.cache)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(write(places.variable)))
    assert is_whole(places.load())
    assert places.downloads == 0


def test_the_cache_comes_before_a_download(places: Places) -> None:
    write(places.cache)
    assert is_whole(places.load())
    assert (places.downloads, places.notices) == (0, [])


def test_what_is_nowhere_is_downloaded(places: Places) -> None:
    places.mirror = None
    assert is_whole(places.load())
    assert places.downloads == 1


@pytest.mark.parametrize("name", ["auto", "fashion-mnist"])
@pytest.mark.parametrize("place", ["flag", "variable"])
def test_a_named_folder_that_does_not_serve_is_an_error(
    places: Places, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    write(places.cache)
    folder = getattr(places, place)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(folder))
    data_dir = folder if place == "flag" else None
    with pytest.raises(RequestError, match=f"there is no {TRAIN_IMAGES} in {folder}"):
        places.load(name, data_dir)
    spoil(folder)
    with pytest.raises(RequestError, match=f"{folder / TEST_LABELS}: its SHA-256 is not"):
        places.load(name, data_dir)
    (folder / TRAIN_LABELS).unlink()
    with pytest.raises(RequestError, match=f"there is no {TRAIN_LABELS} in {folder}"):
        places.load(name, data_dir)


@pytest.mark.parametrize("data_dir", ["file", "x" * 300])
def test_a_data_dir_that_is_no_folder_is_an_error(
    places: Places, tmp_path: Path, data_dir: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match=data_dir):
        places.load("auto", tmp_path / data_dir)


def test_auto_falls_back_loudly_and_says_why(places: Places) -> None:
    data = places.load("auto")
    assert data.name == "synthetic"
    assert places.notices[-1].startswith("FALLING BACK to the synthetic data set")
    assert "no mirror answered" in places.notices[-1]


def test_fashion_mnist_never_falls_back(places: Places) -> None:
    with pytest.raises(RequestError, match=r"no mirror answered.*--data-dir.*--dataset synthetic"):
        places.load("fashion-mnist")


def test_synthetic_looks_nowhere(places: Places) -> None:
    write(places.cache)
    assert places.load("synthetic").name == "synthetic"
    assert (places.downloads, places.notices) == (0, [])


WRONG = {
    "fewer labels": ({TRAIN_LABELS: DATA.train_labels[:11]}, "holds 11 labels, expected 12"),
    "more labels": ({TEST_LABELS: np.zeros(6, np.uint8)}, "holds 6 labels, expected 5"),
    "small images": ({TEST_IMAGES: np.zeros((5, 28, 27), np.uint8)}, r"\(28, 27\), expected"),
    "a label of 10": ({TEST_LABELS: np.full(5, 10, np.uint8)}, "a label 10, expected 0 to 9"),
    "labels for images": ({TRAIN_IMAGES: DATA.train_labels}, "has 1 dimensions, expected 3"),
}


@pytest.mark.parametrize(("changes", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_files_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Bytes], complaint: str
) -> None:
    folder = write(tmp_path / "data", changes)
    with pytest.raises(RequestError, match=complaint) as caught:
        read_fashion_mnist(folder)
    assert str(folder / next(iter(changes))) in str(caught.value)


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    data = read_fashion_mnist(write(tmp_path / "data"))
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        assert getattr(data, name).dtype == np.uint8
        assert np.array_equal(getattr(data, name), getattr(DATA, name))


def test_of_files_so_many_examples_are_taken_as_are_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "data")
    whole = read_fashion_mnist(folder)
    for first in ((3, 2), (None, 0)):
        assert read_fashion_mnist(folder, first).digest() == whole.first(*first).digest()
    assert read_fashion_mnist(folder, (99, 99)).digest() == whole.digest()


@pytest.mark.parametrize(("name", "there"), [("fashion-mnist", 12), ("synthetic", 20)])
def test_more_examples_than_there_are_are_refused(places: Places, name: str, there: int) -> None:
    folder = write(places.flag)
    with pytest.raises(RequestError, match=f"--train-examples 99: {name} has only {there}$"):
        load(name, folder, print, progress=False, first=(99, None))
