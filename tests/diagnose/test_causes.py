"""What arrays tell about a mistake."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Weights
from common.compare.runs import Run
from common.diagnose.suspects import running_statistics, scaled_gradient


def run(arrays: Weights) -> Run:
    record: Any = SimpleNamespace(config=SimpleNamespace(batch_size=20, devices=3))
    return Run(record, arrays)


@pytest.mark.parametrize(
    ("factor", "what"),
    [(20.0, "times 20, the batch size."), (1 / 3, "one over the number of devices."), (7.0, "7.")],
)
def test_a_gradient_that_is_a_multiple_is_named(factor: float, what: str) -> None:
    random = np.random.RandomState(0)
    right = {f"gradients/{name}": random.standard_normal(9) for name in "ab"}
    wrong = {name: factor * gradient for name, gradient in right.items()}
    assert scaled_gradient(run(wrong), right).endswith(what)
    name = "gradients/a"
    assert scaled_gradient(run({**right, name: wrong[name]}), right) == ""
    assert scaled_gradient(run(right), right) == ""


@pytest.mark.parametrize(
    ("diverged", "what"),
    [
        (["bn1.running_mean", "bn1.running_var"], "only running statistics"),
        (["bn1.running_var"], "but the variance is computed otherwise"),
        (["fc.bias", "bn1.running_var"], ""),
    ],
)
def test_statistics_that_alone_diverge_are_named(diverged: list[str], what: str) -> None:
    line = running_statistics([f"weights/{name}" for name in diverged])
    assert what in line
    assert bool(line) == bool(what)
