"""One test body for all frameworks: `pytest --framework jax` runs it on JAX.

Without the option, the tests run that need no framework.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest

# As the command line sets it for several devices; see `ONE_THREAD_EACH` of MXNet. It is read when
# NumPy or a framework is loaded.
os.environ["OMP_NUM_THREADS"] = "1"
# Tests run at the same time: threads that spin take cores from others, and three steps of a narrow
# ResNet-18 in PyTorch took 26 s instead of 0.3.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# An assertion of a helper that fails is printed with its values.
pytest.register_assert_rewrite(*(x.stem for x in Path(__file__).parent.glob("support/*.py")))
import agreement
import numpy_chapter
from scratch_steps import MOST_DEVICES

from common.backends.frameworks import FRAMEWORKS
from common.backends.interface import DeviceRequest, Process
from common.backends.loading import backend

if find_spec("playwright"):
    from browser_tabs import base_url as base_url, browser as browser, tab as tab

# An example that waits for a busy processor has not failed.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

_home = TemporaryDirectory()  # where Keras and MXNet look for data, and JAX for programs
os.environ["KERAS_HOME"] = os.environ["MXNET_HOME"] = _home.name

NEEDS = {
    "book_package/*": "d2l",  # `nox -s d2l` makes environments that have it
    "notebooks/test_*browser.py": "playwright",
    "project/test_[is]*.py": "nox",
    "site/*": "sphinx",  # `nox -s tests` makes an environment that has it
}
collect_ignore_glob = [tests for tests, library in NEEDS.items() if not find_spec(library)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--framework", choices=FRAMEWORKS, help="the framework to test")
    parser.addoption("--jupyter", metavar="FILE", help="a Python that has JAX and Jupyter Lab")
    parser.addoption("--kills", type=int, help="test only faults, with this number of kills")
    parser.addoption("--gpus", type=int, help="test only GPUs, of this number")
    parser.addoption("--hosts", action="store_true", help="test only processes of several hosts")
    parser.addoption("--short", action="store_true", help="test each kind of fault once")


def pytest_configure(config: pytest.Config) -> None:
    """JAX compiles the same programs in many tests."""
    option = config.getoption
    if option("--framework") == "jax" and option("--kills") is None:  # it may leave half a program
        os.environ["JAX_COMPILATION_CACHE_DIR"] = _home.name
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that need another framework or option."""
    foreign = [item for item in items if not _is_asked_for(item, config.getoption)]
    config.hook.pytest_deselected(items=foreign)
    items[:] = [item for item in items if item not in {*foreign}]


def _is_asked_for(item: pytest.Item, option: Callable[[str], Any]) -> bool:
    framework, needs = option("--framework"), getattr(item, "fixturenames", ())
    only, short = item.get_closest_marker("only"), item.get_closest_marker("short")
    about_one = only is not None or "framework" in needs
    return (
        (item.get_closest_marker("faults") is None) == (option("--kills") is None)
        and (item.get_closest_marker("gpu") is None) == (option("--gpus") is None)
        and (item.get_closest_marker("hosts") is not None) == option("--hosts")
        and about_one == (framework is not None)
        and (only is None or framework in only.args)
        and (short is None or framework in short.args or not option("--short"))
    )


@pytest.fixture(scope="session")
def framework(request: pytest.FixtureRequest) -> str:
    """The framework under test."""
    name: str = request.config.getoption("--framework")
    return name


def _chapter(name: str) -> Any:
    """A chapter in the framework under test, which must be installed."""
    return pytest.fixture(scope="session", name=name)(lambda framework: backend(framework, name))


scratch, concise, strategies = map(_chapter, ("scratch", "concise", "strategies"))


@pytest.fixture(scope="session")
def listing(scratch: Any) -> Any:
    """The book's functions of the scratch chapter."""
    return scratch.listing


@pytest.fixture(scope="session")
def all_devices(scratch: Any) -> Sequence[Any]:
    """The simulated devices, as many as any test needs."""
    devices: Sequence[Any] = scratch.devices(Process(), DeviceRequest(MOST_DEVICES, "cpu", 2)).local
    return devices


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which four frameworks agree on 1, 2 and 3 devices."""
    results = tmp_path_factory.mktemp("results")
    for framework, devices in product(FRAMEWORKS, (1, 2, 3)):
        agreement.make(results / "float64", framework, numpy_chapter.NumpyChapter(), devices)
    return results


@pytest.fixture
def results(good: Path, tmp_path: Path) -> Path:
    """A copy of `good` to plant bugs in."""
    return Path(shutil.copytree(good, tmp_path / "results"))


@pytest.fixture(scope="session")
def agreeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that agree."""
    folder = tmp_path_factory.mktemp("two")
    for framework, devices in (("pytorch", 1), ("jax", 2)):
        agreement.make(folder, framework, numpy_chapter.NumpyChapter(), devices)
    return folder


@pytest.fixture
def two(agreeing: Path, tmp_path: Path) -> Path:
    """A copy of `agreeing` to spoil."""
    return Path(shutil.copytree(agreeing, tmp_path / "two"))


@pytest.fixture
def ours(two: Path) -> Path:
    return two / "pytorch-scratch-1dev.json"


@pytest.fixture
def theirs(two: Path) -> Path:
    return two / "jax-scratch-2dev.json"
