"""Where the records of a report come from: machines, versions, data, weights, code."""

from collections.abc import Iterable, Mapping, Sequence
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
    return [
        _counted("Machine", ["machine"], ([_listed(each.machine)] for each in records)),
        _counted(
            "Versions",
            ["framework", "versions"],
            ([each.framework, _listed(each.versions)] for each in records),
        ),
        _counted(
            "Variables that may change rounding",
            ["framework", "set"],
            ([each.framework, _listed(each.environment) or "none"] for each in records),
        ),
        _counted(
            "Data",
            ["name", "images for training, for testing", "SHA-256"],
            (
                [
                    each.data.name,
                    f"{each.data.train_examples:,}, {each.data.test_examples:,}",
                    each.data.sha256,
                ]
                for each in records
            ),
        ),
        _counted(
            "Initial weights",
            ["net", "from", "SHA-256"],
            (
                [
                    each.config.options.net(),
                    each.config.init_weights or f"seed {each.config.seed}",
                    each.initial_weights_sha256,
                ]
                for each in records
            ),
        ),
        _counted(
            "Code of common/ and of the framework",
            ["framework", "SHA-256"],
            ([each.framework, each.source_sha256] for each in records),
        ),
    ]


def begun(records: Sequence[Record]) -> str:
    """When the first and the last of the runs began."""
    times = sorted(record.started for record in records)
    return f"{times[0]} to {times[-1]}" if times else "never"


def _listed(named: Mapping[str, str | int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())


def _counted(caption: str, headings: list[str], found: Iterable[list[str]]) -> Table:
    """A row for each different one, and how many runs it is of."""
    counts: dict[tuple[str, ...], int] = {}
    for row in found:
        counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    rows = [[*row, str(count)] for row, count in sorted(counts.items())]
    return Table(caption, [*headings, "runs"], rows)
