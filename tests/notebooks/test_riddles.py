"""The riddles of the chapter on parity: each is wrong as its solution says, and in nothing else."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from common.models import nets
from common.models.initial import initial_weights
from common.models.weights_file import save_weights
from notebooks.classroom import planted
from notebooks.exercises.parity import excess, moved, riddle_1, riddle_2, riddle_3

HERE = Path(sys.executable)


def test_weights_in_another_order_are_named_with_the_order(tmp_path: Path) -> None:
    right = initial_weights(nets.LENET, 8, "float32")
    save_weights(tmp_path / "right.safetensors", right)
    save_weights(tmp_path / "wrong.safetensors", planted.channels_last(right))
    (said,) = riddle_2(tmp_path / "wrong.safetensors", tmp_path / "right.safetensors")
    assert said.startswith("fc1.weight")
    assert "16 × 50 flattened as 50 × 16" in said or "50 × 16 flattened as 16 × 50" in said


def test_the_momentum_is_found_from_how_far_a_mean_has_come() -> None:
    factor = moved(planted.SLOW, 10) / moved(nets.MOMENTUM, 10)
    assert riddle_1(factor, 10) == pytest.approx(planted.SLOW)
    assert moved(0.1, 2) == pytest.approx(0.1 + 0.9 * 0.1)


def test_the_sum_in_place_of_the_mean_leaves_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    grad = {"fc": np.array([1.0, 2.0])}
    listing = SimpleNamespace(shard_loss_and_grad=lambda params, X, y, examples: (0.25, grad))
    chapter = SimpleNamespace(listing=listing)
    monkeypatch.setattr("common.backends.loading.import_backend", lambda *names: chapter)
    planted.take_the_sum("jax")
    loss, wrong = listing.shard_loss_and_grad({}, "X", "y", examples=20)
    assert loss == 0.25
    assert list(wrong["fc"]) == [20, 40]
    assert riddle_3(wrong["fc"][1] / grad["fc"][1], 20) == 1


def test_a_variance_over_one_less_is_larger_by_as_much_as_a_run_finds() -> None:
    seen = np.random.RandomState(0).standard_normal(96)
    over_n, over_less = 1.0, 1.0
    for _ in range(2):
        over_n += nets.MOMENTUM * (seen.var() - over_n)
        over_less += nets.MOMENTUM * (seen.var(ddof=1) - over_less)
    assert excess(96, 2, float(seen.var())) == pytest.approx(over_less / over_n - 1)
