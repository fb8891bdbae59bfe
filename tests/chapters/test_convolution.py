"""JAX's convolution with gradients of its own gives what `lax` gives."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.only("jax")

CASES = [
    # side, in, out, kernel, stride, padding
    (7, 2, 3, 5, 1, 0),
    (8, 2, 3, 3, 1, 1),
    (8, 2, 3, 3, 2, 1),
    (7, 2, 3, 1, 2, 0),
    (9, 3, 2, 5, 3, 2),
]


@pytest.mark.parametrize(("case", "examples"), [*((case, 2) for case in CASES), (CASES[2], 0)])
def test_its_gradients_are_those_of_lax(
    case: tuple[int, ...], examples: int, all_devices: Sequence[Any]
) -> None:
    jax: Any = importlib.import_module("jax")
    module: Any = importlib.import_module("frameworks.jax.convolution")
    side, channels, out, r, stride, padding = case
    random = np.random.RandomState(0)
    X = random.standard_normal((examples, side, side, channels))
    weight = random.standard_normal((r, r, channels, out))
    results = []
    for convolve in (module.by_products, module.plain):
        value, pull = jax.vjp(jax.jit(partial(convolve, stride=stride, padding=padding)), X, weight)
        results.append([value, *pull(np.sin(value))])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
