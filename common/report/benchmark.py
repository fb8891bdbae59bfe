"""What a benchmark measured, as `bench.json` holds it."""

from statistics import median
from typing import Annotated

from pydantic import BaseModel, Field


class Samples(BaseModel):
    """What was measured of one loop, a value for each round. Times in seconds, sizes in bytes.

    The devices are of one `kind`, "cpu" or "gpu".
    """

    framework: str
    chapter: str
    contender: str
    devices: int
    kind: str = "cpu"
    figures: dict[str, Annotated[list[float], Field(min_length=1)]]

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return median(self.figures[name])

    def on(self) -> str:
        """The devices, in words."""
        if self.kind == "cpu":
            return str(self.devices)
        return f"{self.devices} GPU{'s' if self.devices > 1 else ''}"


class Benchmark(BaseModel):
    """One run of the benchmark: where it was measured, and every sample of every loop.

    `failed` names the loops that could not be measured. So many other processes were kept busy
    `beside` them.
    """

    created: str
    machine: dict[str, str | int]
    rounds: int
    beside: int = 0
    failed: list[str] = []
    samples: list[Samples]

    def company(self) -> str:
        """What was going on beside it, in words; empty if nothing was."""
        if not self.beside:
            return ""
        return f"beside {self.beside} busy process{'es' if self.beside > 1 else ''}"
