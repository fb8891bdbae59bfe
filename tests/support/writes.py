"""Every write of a run in this process: which they are, and what happens just before one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from common.base import files


@contextmanager
def written() -> Iterator[list[str]]:
    """The names of all files that are written meanwhile, in their order."""
    found: list[str] = []
    finish: Callable[[Path, Path], None] = vars(files)["_finish"]

    def note(temporary: Path, path: Path) -> None:
        finish(temporary, path)
        found.append(path.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_finish", note)
        yield found


@contextmanager
def before(number: int, then: Callable[[], object]) -> Iterator[None]:
    """Calls `then` just before the write of that number, counted from 0."""
    make: Callable[..., tuple[int, str]] = vars(files)["tempfile"].mkstemp
    done = iter(range(10_000))

    def mkstemp(**options: Any) -> tuple[int, str]:
        if next(done) == number:
            then()
        return make(**options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("common.base.files.tempfile.mkstemp", mkstemp)
        yield
