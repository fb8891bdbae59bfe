"""What arrays tell about a mistake."""

import numpy as np
import pytest

from common.diagnose.explanations import scaled, statistics


@pytest.mark.parametrize(
    ("factor", "what"),
    [(20.0, "times 20, the batch size."), (1 / 3, "one over the number of devices."), (7.0, "7.")],
)
def test_a_gradient_that_is_a_multiple_is_named(factor: float, what: str) -> None:
    random, sizes = np.random.RandomState(0), {"the batch size": 20, "the number of devices": 3}
    right = {f"gradients/{name}": random.standard_normal(9) for name in "ab"}
    (hint,) = scaled({name: factor * each for name, each in right.items()}, right, sizes)
    assert hint.text.endswith(what)
    assert list(scaled({**right, "gradients/a": factor * right["gradients/a"]}, right, sizes)) == []
    assert list(scaled(right, right, sizes)) == []


@pytest.mark.parametrize(
    ("diverged", "what"),
    [
        (["bn1.running_mean", "bn1.running_var"], "only running statistics"),
        (["bn1.running_var"], "but the variance is computed otherwise"),
        (["fc.bias", "bn1.running_var"], ""),
    ],
)
def test_statistics_that_alone_diverge_are_named(diverged: list[str], what: str) -> None:
    hints = list(statistics([f"weights/{name}" for name in diverged]))
    assert [each.tensor for each in hints] == ([diverged[0]] if what else [])
    assert all(what in each.text for each in hints)
