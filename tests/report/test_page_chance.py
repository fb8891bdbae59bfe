"""The page shows how much of an accuracy is chance, or says why it cannot."""

from pathlib import Path
from typing import Any

import pytest
from markup import shown
from seed_figures import put


def test_both_spreads_the_test_and_its_p_value_are_shown(results: Path) -> None:
    before = shown(results)
    assert "#chance" not in before.values("href")
    assert "null hypothesis" not in before.text
    put(results)
    page = shown(results)
    assert "#chance" in page.values("href")
    assert "scratch: test accuracy of every seed" in page.values("alt")
    for told in (
        "4,800 fashion-mnist images, devices: 1; seeds 0, 1, 2",
        "written 2026-11-22",
        "standard deviation of one framework over the seeds: 0.0183; of the frameworks at "
        "one seed: 0.0136",
        "null hypothesis: which framework ran makes no difference",
        "p = 0.0694 (all 576 permutations",
        "pytorch0.82000.02000.80000.8400",
        "jax - mxnet-0.02330.01530.0088",
    ):
        assert told in page.text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"frameworks": 3}, "valid"),
        ({"seeds": [0, 1]}, "not every seed has an accuracy"),
        ({"over_seeds": 1e308}, "a share is not in 0 to 1"),
    ],
)
def test_figures_that_cannot_be_are_said_to_be_so_in_a_line(
    results: Path, changes: dict[str, Any], why: str
) -> None:
    put(results, **changes)
    (results / "bench.json").write_text("{}")
    page = shown(results)
    assert "all 104 checks passed" in page.headline
    _, _, told = page.text.partition("seeds.json cannot be read: ")
    assert why in told[:100]
    assert "bench.json cannot be read: " in page.text
    assert "null hypothesis" not in page.text
