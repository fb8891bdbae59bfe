"""The tables of what runs that split their net send and keep."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.parallel.costs import predicted
from common.report.runs import kept, of_splits, sent

ROOT = Path(__file__).parents[2]


def record(framework: str, strategy: str, devices: int, one_more: int = 0) -> Any:
    options = StrategiesOptions(strategy)
    right = predicted(options.plan(devices), 8, 4)
    first, *others = right.sent["gradients"]
    counted = replace(right, sent={**right.sent, "gradients": [first + one_more, *others]})
    return SimpleNamespace(
        framework=framework,
        config=SimpleNamespace(options=options, devices=devices),
        split=SimpleNamespace(predicted=right, counted=counted),
    )


def test_the_counts_of_each_framework_stand_beside_the_prediction() -> None:
    runs = [record("jax", "zero1", 2), record("jax", "data", 2), record("pytorch", "data", 2, 1)]
    (headings, *moved), (_, data, zero1) = of_splits(runs).values()
    weights = 129_068 * 4
    assert headings[5:] == ["predicted", "pytorch", "tensorflow", "jax", "mxnet"]
    both = f"{2 * weights:,}"
    assert moved == [
        ["data", "2", "0", both, "0", both, f"{2 * weights + 1:,}", "", both, ""],
        ["zero1", "2", "0", *[f"{weights:,}"] * 2, both, "", "", both, ""],
    ]
    activations = 4 * (784 + 3380 + 800 + 128) * 4
    assert data[2:6] == [f"{weights:,}"] * 3 + [f"{activations:,}"]
    assert zero1[4] == f"{weights // 2:,}"
    assert zero1[6] == zero1[9] == f"{weights * 3 + activations:,}"


def test_the_page_has_what_plans_predict() -> None:
    page = (ROOT / "docs/splitting.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page if line[:1] == "|"]
    found = {
        (parts, row[0], row[1]): row[2:]
        for parts, table in ((sent, rows[:14]), (kept, rows[14:28]))
        for row in table[2:]
    }
    assert len(found) == 2 * 2 * len(STRATEGIES)
    for (parts, strategy, devices), row in found.items():
        options = StrategiesOptions(strategy, depth=8)
        predicted = parts(options.usage(int(devices), 256, 4))
        total = sum(predicted.values())
        assert row == [f"{size:,}" for size in [*predicted.values(), total]]
