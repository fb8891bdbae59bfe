"""What the pages say of speed is what the benchmarks beside them have measured."""

import re
from pathlib import Path

import pytest

from bench.report import markdown
from bench.results import Bench
from bench.targets import TARGETS
from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
NEW, OLD = "bench-2026-11-22-avx512.json", "bench-2026-11-22.json"
SPLIT = "bench-2026-11-27-strategies.json"
ROWS = {
    "LeNet, batch 256: Keras, Estimator": "LeNet: images/s over its high-level loop's",
    "LeNet: a loop over the book's loader": "LeNet: images/s over the d2l loader's loop",
    "ResNet-18, width 64, batch 64: Keras, Estimator": (
        "ResNet-18: images/s over its high-level loop's"
    ),
    "ResNet-18: the book's net and loop": "ResNet-18: images/s over the d2l package's net and loop",
}
SHARES = {
    "LeNet's share of the machine's matrix rate": "LeNet: share of the matrix rate",
    "ResNet-18's": "ResNet-18: share of the matrix rate",
}


def measured(name: str) -> Bench:
    return Bench.model_validate_json((ROOT / "docs" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "tables"), [(NEW, 2), (OLD, 1), (SPLIT, 2)])
def test_the_tables_of_targets_and_figures_are_the_benchmarks(name: str, tables: int) -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    made = markdown(measured(name)).split("\n\n")[2:]
    assert len(made) == 2
    assert all(table.strip() in page for table in made[:tables])


@pytest.mark.parametrize(("rows", "form"), [(ROWS, "{:.2f} ({:.2f})"), (SHARES, "{:.0%} ({:.0f})")])
def test_the_short_form_is_the_benchmarks_too(rows: dict[str, str], form: str) -> None:
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    new, old = measured(NEW), measured(OLD)
    for title, what in rows.items():
        (target,) = (target for target in TARGETS if target.what == what)
        pairs = [(target.figure(new, name), target.figure(old, name)) for name in FRAMEWORKS]
        percent = 100 if "%" in form else 1
        cells = [form.format(first, percent * second) for first, second in pairs]
        assert f"| {title} | {' | '.join(cells).replace('%', ' %')} |" in page


def test_the_readme_has_figures_of_the_results() -> None:
    readme, results = (
        (ROOT / name).read_text("utf-8") for name in ("README.md", "docs/results.md")
    )
    for name in FRAMEWORKS:
        one, two = (
            line.strip("| ").split(" | ")
            for devices in (1, 2)
            for line in results.splitlines()
            if line.startswith(f"| {name} | {devices} |")
        )
        assert f"| {name} | {one[2]}, {two[2]} | {one[5]} and {two[5]} |" in readme
    (ratios,) = re.findall(r"\| LeNet, batch 256: Keras, Estimator \| (.*) \|", results)
    times = [float(cell.split()[0]) for cell in ratios.split(" | ")]
    killed = results.partition("killed after steps")[2].partition("ResNet-18, preset book")[0]
    deep = re.findall(r"\| \w+ \| (0\.\d+) \|", killed)
    assert f"{min(times)} to {max(times):.1f} times" in readme
    assert f"{min(deep)} to {max(deep)}" in readme
