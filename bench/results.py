"""What `bench.json` holds: every sample of every entry, and where it was measured."""

from collections.abc import Iterable
from statistics import median
from typing import Any, Literal

from pydantic import Field

from bench.plan import Entry
from common.records.record import DataUsed
from common.report.speed import Benchmark, Samples


class Bench(Benchmark):
    """One run of the benchmark, with what it rests on."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    versions: dict[str, dict[str, str]]
    data: DataUsed

    def of(self, framework: str, chapter: str, contender: str, devices: int = 1) -> Samples:
        """The samples of an entry. Raises LookupError if it was not measured."""
        wanted = (framework, chapter, contender, devices)
        for each in self.samples:
            if (each.framework, each.chapter, each.contender, each.devices) == wanted:
                return each
        raise LookupError(wanted)

    def on_gpus(self) -> bool:
        """Whether it was measured on GPUs."""
        return any(each.kind == "gpu" for each in self.samples)

    def machine_rate(self) -> float:
        """The highest rate of any framework's matrix product, in operations per second.

        Raises LookupError if none was measured.
        """
        rates = [each.figures["operations_per_second"] for each in self.samples if machine(each)]
        if not rates:
            raise LookupError("no matrix product")
        return max(median(rate) for rate in rates)


def ratio(name: str, above: Samples, below: Samples) -> float:
    """The median over the rounds of the ratio within a round: a drifting machine cancels."""
    return median(a / b for a, b in zip(above.figures[name], below.figures[name], strict=True))


def machine(samples: Samples) -> bool:
    """Whether these samples are of the machine, not of a contender."""
    return samples.contender == "machine"


def gathered(found: Iterable[tuple[Entry, dict[str, Any]]]) -> list[Samples]:
    """The figures of all rounds, entry by entry."""
    made: dict[Entry, dict[str, list[float]]] = {}
    for entry, figures in found:
        for name, value in figures.items():
            made.setdefault(entry, {}).setdefault(name, []).append(value)
    return [Samples(**vars(entry), figures=figures) for entry, figures in made.items()]
