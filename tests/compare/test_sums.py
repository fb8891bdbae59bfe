"""A gradient that nearly cancels is compared by what was added up, as closely as rounding allows."""

from pathlib import Path

from agreement import failed, judge, make, rewrite
from numpy_concise import NumpyConcise

from common.compare.numpy_layers import SUMS
from common.compare.replay import replay
from common.pairs.runs import read_run


def test_a_ten_thousandth_of_what_was_added_up_is_seen(tmp_path: Path) -> None:
    frameworks = ("mxnet", "jax")
    for framework in frameworks:
        path = make(
            tmp_path,
            framework,
            NumpyConcise(),
            1,
            **{"chapter": "concise", "width": 2, "dtype": "float32"},
            **{"batch_norm": "per-device", "steps": 2},
        )
    run, gradient = read_run(path), "gradients/stage2.block1.bn1.weight"
    replayed = replay(run)
    assert replayed
    added_up = replayed.scales[gradient] / SUMS
    rewrite(path, {gradient: run.arrays[gradient] + 1e-6 * added_up})
    assert judge(tmp_path, frameworks=frameworks).passed
    rewrite(path, {gradient: run.arrays[gradient] + 1e-4 * added_up})
    assert failed(judge(tmp_path, frameworks=frameworks)) == {("gradient", "jax", 1)}
