"""What `bench.json` holds: every sample of every entry, and where it was measured."""

from collections.abc import Iterable
from statistics import median
from typing import Any, Literal

from pydantic import BaseModel, Field

from bench.plan import Entry
from common.records.record import DataUsed


class Samples(BaseModel):
    """What was measured of one entry, a value for each round. Times in seconds, sizes in bytes."""

    framework: str
    chapter: str
    contender: str
    devices: int
    figures: dict[str, list[float]]

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return median(self.figures[name])


class Bench(BaseModel):
    """One run of the benchmark."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    created: str
    machine: dict[str, str | int]
    versions: dict[str, dict[str, str]]
    data: DataUsed
    rounds: int
    samples: list[Samples]

    def of(self, framework: str, chapter: str, contender: str, devices: int = 1) -> Samples:
        """The samples of an entry. Raises LookupError if it was not measured."""
        wanted = (framework, chapter, contender, devices)
        for each in self.samples:
            if (each.framework, each.chapter, each.contender, each.devices) == wanted:
                return each
        raise LookupError(wanted)

    def machine_rate(self) -> float:
        """The highest rate of any framework's matrix product, in operations per second."""
        rates = [each.figures["operations_per_second"] for each in self.samples if machine(each)]
        return max(median(rate) for rate in rates)


def ratio(name: str, above: Samples, below: Samples) -> float:
    """The median over the rounds of the ratio within a round: a drifting machine cancels."""
    return median(a / b for a, b in zip(above.figures[name], below.figures[name], strict=True))


def machine(samples: Samples) -> bool:
    """Whether these samples are of the machine, not of a contender."""
    return samples.contender == "machine"


def gathered(found: Iterable[tuple[Entry, dict[str, Any]]]) -> list[Samples]:
    """The figures of all rounds, entry by entry."""
    made: dict[Entry, Samples] = {}
    for entry, figures in found:
        if entry not in made:
            made[entry] = Samples(
                framework=entry.framework,
                chapter=entry.chapter,
                contender=entry.contender,
                devices=entry.devices,
                figures={name: [] for name in figures},
            )
        for name, value in figures.items():
            made[entry].figures[name].append(value)
    return list(made.values())
