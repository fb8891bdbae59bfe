"""Two sets of arrays, compared array by array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from common.base.arrays import Array, Weights
from common.compare.findings import Check
from common.pairs.arrays import compare_arrays, likeness

NORMAL = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).standard_normal(shape)


def only(ours: Weights, expected: Weights) -> Check:
    """The one pair that fails."""
    verdict = compare_arrays(ours, expected)
    (failed,) = [pair for pair in verdict.checks if not pair.passed]
    assert not verdict.passed
    assert verdict.conclusion.startswith(
        f"they diverge in 1 of {len(verdict.checks)} arrays, first in {failed.array}: "
    )
    return failed


@given(arrays(np.float64, array_shapes(max_dims=3), elements=NORMAL))
def test_two_roundings_of_the_same_numbers_are_the_same(exact: Array) -> None:
    single = exact.astype(np.float32)
    assert compare_arrays({"w": single}, {"w": exact}).passed
    # Neighbours are what two roundings of one number are at most apart.
    assert compare_arrays({"w": np.nextafter(single, np.float32(0))}, {"w": single}).passed
    beyond = single.copy()
    worst = np.abs(single).argmax()
    beyond.flat[worst] *= np.float32(1 + 2.5 * 2**-23)
    assert not compare_arrays({"w": beyond}, {"w": single}).passed


def test_one_wrong_entry_of_any_array_is_seen() -> None:
    expected = {"a": drawn(3, 4), "b": drawn(5)}
    for name, values in expected.items():
        wrong = values.copy()
        wrong.flat[-1] += 1e-9
        found = only({**expected, name: wrong}, expected)
        assert (found.array, found.note) == (name, "")
        assert found.where == str([n - 1 for n in values.shape])
        assert found.distance == pytest.approx(1e-9 / np.abs(values).max(), rel=1e-5)
        assert compare_arrays({**expected, name: wrong}, expected, 1e-9).passed


def test_what_has_no_distance_or_is_not_equal_fails() -> None:
    cases: list[tuple[Any, Any, str]] = [
        ([1.0, np.nan], [1.0, 2.0], "NaN or infinity in the first"),
        ([np.nan], [-np.inf], "NaN or infinity in the first and the second"),
        ([1.0, 2.0], [[1.0, 2.0]], "(2,) and (1, 2); equal after .reshape(1, 2)"),
        ([1e308], [-1e308], ""),
    ]
    for ours, expected, note in cases:
        assert only({"a": np.array(ours)}, {"a": np.array(expected)}).note == note


CHANGES: list[tuple[tuple[int, ...], Callable[[Array], Array], str]] = [
    ((3, 4), lambda a: a, "equal"),
    ((3, 4), np.transpose, "equal after .transpose(1, 0)"),
    ((5, 1, 3, 3), lambda a: a.transpose(2, 3, 1, 0), "equal after .transpose(3, 2, 0, 1)"),
    ((6,), lambda a: a[None], "equal after .reshape(6,)"),
]


@pytest.mark.parametrize(("shape", "change", "hint"), CHANGES)
def test_what_is_only_transposed_reshaped_or_renamed_is_said(
    shape: tuple[int, ...], change: Callable[[Array], Array], hint: str
) -> None:
    expected = drawn(*shape)
    ours = change(expected).astype("float32")
    if hint != "equal":
        assert only({"a": ours}, {"a": expected}).note.endswith(hint)
    renamed = compare_arrays({"b": ours, "x": drawn(9)}, {"a": expected, "y": drawn(9, seed=1)})
    assert not any(pair.passed for pair in renamed.checks)
    assert {pair.array: pair.note for pair in renamed.checks} == {
        "a": f"is only in the second; the first's b is {hint}",
        "y": "is only in the second",
        "b": "is only in the first",
        "x": "is only in the first",
    }


def test_what_cannot_be_told_is_not_said() -> None:
    for ours, expected in (
        (np.zeros((3, 4)), np.zeros((4, 3))),  # any order would do
        (drawn(3, 4), drawn(4, 3, seed=1)),
        (np.full((2, 3), np.nan), np.full((3, 2), np.nan)),
        (drawn(1, 1), drawn(1)),  # a single number tells nothing
    ):
        assert likeness(ours, expected, 0.5) == ""
