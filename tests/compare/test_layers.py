"""The report names the first layer in which a framework diverges."""

from itertools import product
from pathlib import Path

import pytest
from agreement import judge, make_runs
from numpy_chapter import NumpyConcise, WrongEpsilon, WrongMomentum


def diverging(folder: Path) -> set[tuple[str, int, float | None, str]]:
    """Which frameworks diverge on how many devices, beyond which limit, and in which layer."""
    found = [each for each in judge(folder).failures if each.check.startswith("layers")]
    return {(x.framework, x.devices, x.tolerance, x.diverged[0].rpartition("/")[2]) for x in found}


@pytest.mark.parametrize(
    ("bug", "layer"), [(WrongEpsilon, "stage3.block1.bn2"), (WrongMomentum, "bn1")]
)
def test_the_first_layer_that_is_wrong_is_named(
    tmp_path: Path, bug: type[NumpyConcise], layer: str
) -> None:
    make_runs(tmp_path, NumpyConcise())
    verdict = judge(tmp_path)
    assert verdict.passed
    checks = {each.check for each in verdict.comparisons[0].checks}
    assert checks >= {"layers", "layers_after"}
    make_runs(tmp_path, bug(), "jax")
    assert diverging(tmp_path) == {("jax", k, 1e-10, layer) for k in (1, 2)}
    if bug is WrongEpsilon:  # where all agree on what is wrong, only the exact answer can tell
        make_runs(tmp_path, NumpyConcise(), "jax")
        make_runs(tmp_path, bug(), "jax", "mxnet", dtype="float32")
        wrong = product(("jax", "mxnet"), (1, 2))
        assert diverging(tmp_path) == {(*run, 3e-6, layer) for run in wrong}


def test_without_exact_layers_the_runs_are_compared_with_their_median(tmp_path: Path) -> None:
    make_runs(tmp_path, NumpyConcise(), "jax", "mxnet", dtype="float32")
    make_runs(tmp_path, WrongEpsilon(), "tensorflow", dtype="float32")
    layer = "stage3.block1.bn2"
    assert diverging(tmp_path) == {("tensorflow", k, 3e-6, layer) for k in (1, 2)}
