"""The book's own package, `d2l`, and images where its loaders look for Fashion-MNIST."""

import gzip
import os
import random
import struct
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from common.data.dataset import Bytes

ABSENT: Final = {
    "IPython": "display",
    "PIL": "Image",
    "matplotlib": "pyplot",
    "matplotlib_inline": "backend_inline",
    "pandas": "DataFrame",
    "scipy": "spatial",
    "scipy.spatial": "distance_matrix",
    "tensorflow": "data",
    "tensorflow_datasets": "load",
    "torchvision": "transforms",
}
"""What `d2l` loads to draw, to read tables and to fetch data, each with a name it takes."""

REGISTRATIONS: Final = "torchvision._meta_registrations"
"""Of operators that its build for CUDA, the only one on PyPI, lacks beside a PyTorch for CPUs."""


def package(framework: str) -> Any:
    """The module of `d2l` for a framework; what is not installed is empty for it."""
    absent = [name for name in ABSENT if find_spec(name.partition(".")[0]) is None]
    empty = {name: module_from_spec(ModuleSpec(name, None)) for name in (*absent, REGISTRATIONS)}
    for name in absent:
        setattr(empty[name], ABSENT[name], None)
    sys.modules.update(empty)
    try:
        # JAX's draws a seed up to 1e6 when it is loaded: from Python 3.12 on that is no integer.
        with patch.object(random, "randint", lambda low, high: 0):
            return import_module(f"d2l.{'torch' if framework == 'pytorch' else framework}")
    finally:
        for name in empty:
            del sys.modules[name]


@cache
def home() -> TemporaryDirectory[str]:
    """A folder for data, gone when this process ends; Keras and MXNet ask when they are loaded."""
    made = TemporaryDirectory()
    os.environ["KERAS_HOME"] = os.environ["MXNET_HOME"] = made.name
    return made


@contextmanager
def at_home() -> Iterator[None]:
    """Keras finds the folder for data meanwhile, also where a chapter was loaded before it.

    Chapters have it look nowhere.
    """
    if not (keras := sys.modules.get("keras")):
        yield
        return
    with patch.object(keras.src.backend.config, "_KERAS_DIR", home().name):
        yield


def loader(d2l: Any, batch_size: int, images: Bytes, labels: Bytes) -> Any:
    """The package's shuffled minibatches, of these images in place of Fashion-MNIST's."""
    folder = Path(home().name)
    write(folder / "datasets" / "fashion-mnist", images, labels, compressed=True)
    # torchvision looks for what it has decompressed, in a path that the package gives it.
    write(folder / "data" / "FashionMNIST" / "raw", images, labels, compressed=False)
    with chdir(folder / "data"), at_home():
        if hasattr(d2l, "load_data_fashion_mnist"):
            return d2l.load_data_fashion_mnist(batch_size)[0]
        return d2l.FashionMNIST(batch_size).train_dataloader()  # JAX has this newer way alone


def write(folder: Path, images: Bytes, labels: Bytes, *, compressed: bool) -> None:
    """The four files of Fashion-MNIST; with no more than one image to test on."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", len(images)), ("t10k", 1)):
        for kind, values in (("images-idx3", images[:count]), ("labels-idx1", labels[:count])):
            header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
            content = header + values.tobytes()
            path = folder / f"{part}-{kind}-ubyte"
            if compressed:
                path.with_suffix(".gz").write_bytes(gzip.compress(content, compresslevel=1))
            else:
                path.write_bytes(content)
