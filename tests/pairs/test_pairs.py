"""Two sets of arrays: how far each is from its other, and whether it is only rearranged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET, resnet18_shapes
from common.pairs.arrays import compare_arrays, in_order, rounding
from common.pairs.rearranged import likeness
from common.pairs.verdict import ArrayPair

NORMAL = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).standard_normal(shape)


def only(ours: Weights, expected: Weights, tolerance: float | None = None) -> ArrayPair:
    """The one pair that fails."""
    verdict = compare_arrays(ours, expected, tolerance)
    (failed,) = [pair for pair in verdict.arrays if not pair.passed]
    assert not verdict.passed
    assert verdict.conclusion.startswith(
        f"they diverge in 1 of {len(verdict.arrays)} arrays, first in {failed.array}: "
    )
    return failed


def lenet() -> Weights:
    weights = initial_weights(LENET, 1, "float64")
    return {name: values + drawn(*values.shape) for name, values in weights.items()}


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


@pytest.mark.parametrize(
    ("first", "second", "limit"),
    [
        ("float64", "float64", 2**-52),
        ("float32", "float64", 2**-23),
        ("int64", "bool", 0),
    ],
)
def test_the_limit_is_one_epsilon_of_the_coarser_dtype(
    first: str, second: str, limit: float
) -> None:
    assert rounding(np.ones(2, first), np.ones(2, second)) == limit


@pytest.mark.parametrize("name", ["conv1.bias", "fc1.weight"])
def test_one_wrong_entry_of_any_array_is_seen(name: str) -> None:
    ours, expected = lenet(), lenet()
    ours[name].flat[-1] += 1e-9
    found = only(ours, expected)
    assert found.array == name
    assert found.where == str([n - 1 for n in LENET[name]])
    assert found.distance == pytest.approx(1e-9 / np.abs(expected[name]).max(), rel=1e-5)
    assert compare_arrays(ours, expected, 1e-9).passed
    assert found.hint == ""


def test_arrays_come_in_the_nets_order_or_the_files() -> None:
    for shapes in (LENET, resnet18_shapes(4)):
        assert in_order(sorted(shapes)) == list(shapes)
        assert in_order([f"weights/{name}" for name in sorted(shapes)])[0] == "weights/conv1.weight"
    assert in_order(["z", "a", "conv1.weight"]) == ["z", "a", "conv1.weight"]
    ours, expected = lenet(), {name: lenet()[name] for name in sorted(LENET)}
    for name in ("fc1.weight", "conv2.bias"):
        ours[name] = ours[name] + 1
    assert "2 of 8 arrays, first in conv2.bias: " in compare_arrays(ours, expected).conclusion


@pytest.mark.parametrize(
    ("ours", "expected", "note"),
    [
        ([1.0, np.nan], [1.0, 2.0], "NaN or infinity in the first"),
        ([1.0, 2.0], [1.0, -np.inf], "NaN or infinity in the second"),
        ([np.nan], [np.nan], "NaN or infinity in the first and the second"),
        ([1.0, 2.0], [[1.0, 2.0]], "(2,) and (1, 2)"),
        ([1e308], [-1e308], "farther apart than float64 can say"),
        ([1], [2], ""),
        (np.zeros((0, 3)), np.zeros((3, 0)), "(0, 3) and (3, 0)"),
    ],
)
def test_what_has_no_distance_or_is_not_equal_fails(ours: Any, expected: Any, note: str) -> None:
    found = only({"a": np.array(ours)}, {"a": np.array(expected)})
    assert found.note == note
    assert found.model_dump_json()


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.float32(2.5), True])
def test_empty_arrays_scalars_and_zeros_are_compared(values: Any) -> None:
    ours: Weights = {"a": values, "b": np.ones(2)}
    assert compare_arrays(ours, ours).passed
    assert not compare_arrays(ours, {**ours, "b": np.ones(2) + 1e-6}).passed


def test_arrays_that_only_one_has_fail() -> None:
    verdict = compare_arrays({"a": drawn(3), "b": drawn(2)}, {"a": drawn(3), "c": drawn(4)})
    assert [(pair.array, pair.passed, pair.note) for pair in verdict.arrays] == [
        ("a", True, ""),
        ("c", False, "is in the second alone"),
        ("b", False, "is in the first alone"),
    ]
    assert {pair.hint for pair in verdict.arrays} == {""}


@pytest.mark.parametrize("wrong", [{}, {"a": np.array(["x"])}, {"a": np.array([{}])}])
def test_what_is_no_numbers_is_refused(wrong: Weights) -> None:
    for pair in ((wrong, lenet()), (lenet(), wrong)):
        with pytest.raises(RequestError, match=r"holds no arrays|, not numbers"):
            compare_arrays(*pair)


def flattened_last(values: Array) -> Array:
    """LeNet's first dense layer as a net has it whose images are rows, columns, channels."""
    return values.reshape(50, 4, 4, 128).transpose(1, 2, 0, 3).reshape(800, 128)


CHANGES: list[tuple[tuple[int, ...], Callable[[Array], Array], str]] = [
    ((3, 4), np.transpose, "equal after .transpose(1, 0)"),
    ((5, 1, 3, 3), lambda a: a.transpose(2, 3, 1, 0), "equal after .transpose(3, 2, 0, 1)"),
    ((5, 1, 1, 3), lambda a: a.transpose(3, 1, 2, 0), "equal after .transpose(3, 1, 2, 0)"),
    ((6,), lambda a: a[None], "equal after .reshape(6,)"),
    ((3, 4), lambda a: a[[2, 0, 1]], "equal with the 3 slices along axis 0 in another order"),
    ((4, 2, 3), lambda a: a[:, ::-1], "equal with the 2 slices along axis 1 in another order"),
    ((5,), lambda a: a[::-1], "equal with the entries in another order"),
    (
        (800, 128),
        flattened_last,
        "equal with the 800 slices along axis 0 in another order, 16 × 50 flattened as 50 × 16",
    ),
    (
        (800, 128),
        lambda a: flattened_last(a).T,
        "equal after .transpose(1, 0) and with the 800 slices along axis 0 in another order, "
        "16 × 50 flattened as 50 × 16",
    ),
]


@pytest.mark.parametrize(("shape", "change", "hint"), CHANGES)
def test_what_is_only_rearranged_is_said(
    shape: tuple[int, ...], change: Callable[[Array], Array], hint: str
) -> None:
    expected = drawn(*shape)
    ours = change(expected).astype("float32")
    assert only({"a": ours}, {"a": expected}).hint == hint
    renamed = compare_arrays({"b": ours}, {"a": expected})
    assert [pair.hint for pair in renamed.arrays] == [
        f"the first's b is {hint}",
        "is the second's a",
    ]


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (np.zeros((3, 4)), np.zeros((4, 3))),  # any order would do
        (np.ones(4), np.ones((2, 2))),
        (drawn(3, 4), drawn(4, 3, seed=1)),
        (drawn(3, 4), drawn(3, 4).T + 1e-2),
        (np.full((2, 3), np.nan), np.full((3, 2), np.nan)),
        (drawn(8, 8)[::-1, ::-1], drawn(8, 8)),  # no single step makes it
        (drawn(1, 1), drawn(1)),  # a single number tells nothing
        # It is symmetric in two axes, so two orders of axes make it.
        (
            np.einsum("i,j,k->ijk", [1, 2], [1, 2], [3, 5]),
            np.einsum("i,j,k->kij", [1, 2], [1, 2], [3, 5]),
        ),
    ],
)
def test_what_cannot_be_told_is_not_said(ours: Array, expected: Array) -> None:
    assert likeness(ours, expected, 0.5) == ""


def test_a_wide_tolerance_makes_no_likeness() -> None:
    ours, expected = {"a": drawn(40)}, {"b": np.sort(drawn(40, seed=1))}
    assert {pair.hint for pair in compare_arrays(ours, expected, 5).arrays} == {""}


def test_a_name_is_only_matched_if_there_is_one_choice() -> None:
    ours = {"x": drawn(3), "y": drawn(3), "z": drawn(4)}
    verdict = compare_arrays(ours, {"a": drawn(3), "b": drawn(4)})
    assert [pair.hint for pair in verdict.arrays] == [
        "",
        "the first's z is equal",
        "",
        "",
        "is the second's b",
    ]
