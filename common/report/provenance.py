"""Where the records of a report come from: machines, versions, data, weights, code."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common.records.record import Record


@dataclass(frozen=True)
class Table:
    """A table for a page."""

    caption: str
    headings: list[str]
    rows: list[list[str]]


def tables(records: Sequence[Record]) -> list[Table]:
    """What the records rest on, each of it once, with the number of runs that do."""
    rested_on: list[tuple[str, list[str], Callable[[Record], list[str]]]] = [
        ("Machine", ["machine"], lambda each: [_listed(each.machine)]),
        (
            "Versions",
            ["framework", "versions"],
            lambda each: [each.framework, _listed(each.versions)],
        ),
        (
            "Variables that may change rounding",
            ["framework", "set"],
            lambda each: [each.framework, _listed(each.environment) or "none"],
        ),
        ("Data", ["name", "images for training, for testing", "SHA-256"], _data),
        ("Initial weights", ["net", "from", "SHA-256"], _initial_weights),
        (
            "Code of common/ and of the framework",
            ["framework", "SHA-256"],
            lambda each: [each.framework, each.source_sha256],
        ),
    ]
    made = []
    for caption, headings, row in rested_on:
        counts = Counter(tuple(row(each)) for each in records)
        rows = [[*cells, str(count)] for cells, count in sorted(counts.items())]
        made.append(Table(caption, [*headings, "runs"], rows))
    return made


def _data(record: Record) -> list[str]:
    data = record.data
    return [data.name, f"{data.train_examples:,}, {data.test_examples:,}", data.sha256]


def _initial_weights(record: Record) -> list[str]:
    config = record.config
    origin = config.init_weights or f"seed {config.seed}"
    return [config.options.net(), origin, record.initial_weights_sha256]


def begun(records: Sequence[Record]) -> str:
    """When the first and the last of the runs began."""
    times = sorted(record.started for record in records)
    return f"{times[0]} to {times[-1]}" if times else "never"


def _listed(named: Mapping[str, str | int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())
