"""JAX's convolution with gradients of its own gives what `lax` gives."""

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import oracle
import pytest
from concise_steps import RATES, Trained

CASES = [
    # side, in, out, kernel, stride, padding
    (7, 2, 3, 5, 1, 0),
    (8, 2, 3, 3, 1, 1),
    (8, 2, 3, 3, 2, 1),
    (7, 2, 3, 1, 2, 0),
    (9, 3, 2, 5, 3, 2),
]


@pytest.mark.only("jax")
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


@pytest.mark.only("jax")
def test_steps_with_it_are_those_of_numpy(
    concise: Any,
    all_devices: Sequence[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tests' nets are too narrow for it, so here every layer has it."""
    jax: Any = importlib.import_module("jax")
    monkeypatch.setattr("frameworks.jax.convolution.products_are_faster", lambda _: True)
    jax.clear_caches()
    found = Trained("jax", all_devices[:3], "sync", "float64", tmp_path).run(concise)
    jax.clear_caches()
    split = concise_steps.split("sync", 3)
    start, steps = concise_steps.start("float64"), concise_steps.batches("float64")
    losses, expected = oracle.sgd("concise", start, steps, RATES, split)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-11)
    for name, values in expected.items():
        largest = np.abs(values).max()
        assert np.abs(found[f"weights/{name}"] - values).max() < 1e-10 * largest, name


@pytest.mark.only("jax")
@pytest.mark.parametrize(
    ("flags", "channels", "expected"),
    [("avx2", 64, True), ("avx2", 63, False), ("avx2 avx512f", 64, False)],
)
def test_it_is_chosen_where_it_pays(
    all_devices: Sequence[Any],
    monkeypatch: pytest.MonkeyPatch,
    flags: str,
    channels: int,
    expected: bool,
) -> None:
    module: Any = importlib.import_module("frameworks.jax.convolution")
    monkeypatch.setattr(module, "cpu_information", lambda: {"flags": flags})
    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    assert module.products_are_faster(channels) == expected
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    assert not module.products_are_faster(channels)
