"""The figures of tests of faults: each fault that was made counts, by its kind."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.base.machine import describe_machine, now


@dataclass(frozen=True)
class Figures:
    """Adds a line of JSON to a file for each call, if there is one."""

    path: Path | None
    framework: str | None

    def __call__(self, fault: str, number: int = 1, **where: str | int) -> None:
        """So many faults of a kind were made, and nothing was lost: else the test had failed."""
        if self.path is None or not number:
            return
        machine = describe_machine()
        line = {
            "fault": fault,
            "number": number,
            "framework": self.framework or "",
            "date": now()[:10],
            "machine": f"{machine['processor']}, {machine['cores']} cores",
            **where,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")


@pytest.fixture(scope="session")
def figures(request: pytest.FixtureRequest) -> Figures:
    """Counts the faults that were made."""
    path, framework = (request.config.getoption(f"--{name}") for name in ("figures", "framework"))
    return Figures(Path(path).absolute() if path else None, framework)
