"""The benchmark's results: the file bench.json, and one table."""

from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

from pydantic import BaseModel, Field

from bench.plan import Entry
from common.chapters.spec import spec

HEADINGS: Final = (
    *("net", "framework", "loop", "on", "images per s", "ours over it"),
    *("s to first step", "MiB"),
)
"""The columns; `on` is the number of devices."""


@dataclass(frozen=True)
class Samples(Entry):
    """The figures of one loop, a value for each round: seconds, bytes and images per second."""

    figures: dict[str, list[float]] = field(kw_only=True)

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return median(self.figures[name])


class Bench(BaseModel):
    """One benchmark; `failed` has the names of the entries that could not be timed."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    created: str
    machine: dict[str, str | int]
    versions: dict[str, dict[str, str]]
    data: dict[str, str | int]
    rounds: int
    failed: list[str] = []
    samples: list[Samples]

    def speedup(self, samples: Samples) -> float | None:
        """The images/s of ours over a rival's on as many devices; None for ours.

        It is the median of the ratios within each round, so that a drifting machine cancels.
        """
        chosen = samples.framework, samples.chapter, samples.devices
        for ours in self.samples:
            key = ours.framework, ours.chapter, ours.devices
            if ours.contender == "ours" != samples.contender and key == chosen:
                both = (loop.figures["images_per_second"] for loop in (ours, samples))
                ratios: list[float] = [a / b for a, b in zip(*both, strict=True)]
                return median(ratios)
        return None

    def rows(self) -> list[list[str]]:
        """A row for each loop: medians over the rounds."""
        return [
            [
                spec(loop.chapter).heading.partition(",")[0],
                loop.framework,
                loop.contender,
                f"{loop.devices}{' GPU' if loop.kind == 'gpu' else ''}",
                f"{loop.median('images_per_second'):,.0f}",
                f"{speedup:.2f}" if (speedup := self.speedup(loop)) else "",
                f"{loop.median('first_step'):.1f}",
                f"{loop.median('peak_memory') / 2**20:,.0f}",
            ]
            for loop in self.samples
            if loop.chapter  # not the machine itself, which older files have
        ]

    def provenance(self) -> str:
        """The machine, the date and the rounds, and which entries failed."""
        machine = self.machine
        parts = [f"{machine['processor']}, {machine['cores']} cores, {self.created}"]
        parts.append(f"medians of {self.rounds} rounds on {self.data['name']}")
        if "gpus" in machine:
            parts.append(f"{machine['gpus']}, driver {machine['driver']}, float32 without TF32")
            parts.append("MiB are of the host's memory")
        if self.failed:
            parts.append(f"failed: {', '.join(self.failed)}")
        return "; ".join(parts)
