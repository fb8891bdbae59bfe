"""The code and the packages that a run rests on."""

import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    *("base", "data", "models", "parallel", "backends"),
    *("hosts", "chapters", "settings", "records", "training"),
)
"""The rooms of `common/` that decide a run's numbers."""


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
    found: dict[str, str] = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found
