"""The code, packages and GPUs of a run."""

import hashlib
import os
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from common.backends.driver import count_cards, find_driver

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    *("base", "data", "models", "parallel", "backends"),
    *("chapters", "trainers", "settings", "records", "training"),
)
"""The rooms of `common/` that decide a run's numbers."""

VISIBLE: Final = os.environ.get("CUDA_VISIBLE_DEVICES")
"""Its first value: a run hides the GPUs that it does not use."""


def source_digest(framework: str) -> str:
    """The SHA-256 over the code that decides a run's numbers."""
    state = hashlib.sha256()
    for path in sources(framework):
        state.update(path.relative_to(ROOT).as_posix().encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def sources(framework: str) -> list[Path]:
    """The files that decide the numbers of a framework's runs."""
    rooms = [ROOT / "common" / room for room in ROOMS]
    folders = [*rooms, ROOT / "frameworks" / "strategies", ROOT / "frameworks" / framework]
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def versions(distributions: tuple[str, ...]) -> dict[str, str]:
    """The installed version of each distribution; "none" where it is not installed."""
    installed = dict.fromkeys(distributions, "none")
    for name in distributions:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def gpus_here() -> dict[str, str | int]:
    """The GPUs that a run could choose from, and NVIDIA's driver."""
    if isinstance(driver := find_driver(VISIBLE), str):  # the framework may see more
        return {"gpus": "unknown", "driver": "unknown"}
    return {"gpus": count_cards(driver.cards), "driver": driver.version}
