"""The figures of tests of faults: each fault that was made counts, by its kind."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figures:
    """Adds a line of JSON to a file for each call, if there is one."""

    path: Path | None
    framework: str | None

    def __call__(self, fault: str, number: int = 1, **where: str | int) -> None:
        """So many faults of a kind were made, and nothing was lost: else the test had failed."""
        line = {"fault": fault, "number": number, "framework": self.framework or "none", **where}
        if self.path is not None and number:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
