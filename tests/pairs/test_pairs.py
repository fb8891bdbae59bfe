"""Two sets of arrays: how far each is from its other, and whether it is only rearranged."""

from typing import Any

import numpy as np
import pytest
from drawn_arrays import drawn, only
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.compare.distances import distance
from common.models.initial import initial_weights
from common.models.nets import LENET, resnet18_shapes
from common.pairs.arrays import compare_arrays, in_order, rounding

NORMAL = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


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
        ("float64", "float16", 2**-10),
        ("complex64", "float64", 2**-23),
        ("int64", "float32", 2**-23),
        ("int64", "bool", 0),
    ],
)
def test_the_limit_is_one_epsilon_of_the_coarser_dtype(
    first: str, second: str, limit: float
) -> None:
    assert rounding(np.ones(2, first), np.ones(2, second)) == limit


@pytest.mark.parametrize("name", LENET)
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


def test_equal_arrays_are_said_to_be_equal() -> None:
    verdict = compare_arrays(lenet(), lenet())
    assert verdict.passed
    assert verdict.conclusion == "the same: all 8 arrays are equal"


@pytest.mark.parametrize(
    ("ours", "expected", "note"),
    [
        ([1.0, np.nan], [1.0, 2.0], "NaN or infinity in the first"),
        ([1.0, 2.0], [1.0, -np.inf], "NaN or infinity in the second"),
        ([np.nan], [np.nan], "NaN or infinity in the first and the second"),
        ([1.0, 2.0], [[1.0, 2.0]], "(2,) and (1, 2)"),
        ([1e308], [-1e308], "farther apart than float64 can say"),
        ([1], [2], ""),
        ([2**60], [2**60 + 1], "whole numbers, closer than float64 can say"),
        (np.zeros((0, 3)), np.zeros((3, 0)), "(0, 3) and (3, 0)"),
    ],
)
def test_what_has_no_distance_or_is_not_equal_fails(ours: Any, expected: Any, note: str) -> None:
    found = only({"a": np.array(ours)}, {"a": np.array(expected)})
    assert found.note == note
    assert found.model_dump_json()


def test_nothing_is_near_what_is_not_a_number() -> None:
    sound = np.ones(2)
    for value in (np.nan, np.inf):
        unsound = np.array([1, value])
        assert distance(unsound, sound) == distance(sound, unsound) == (np.inf, ())


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.float32(2.5), np.zeros(3), 5, True])
def test_empty_arrays_scalars_and_zeros_are_compared(values: Any) -> None:
    ours: Weights = {"a": values, "b": np.ones(2)}
    assert compare_arrays(ours, ours).passed
    assert not compare_arrays(ours, {**ours, "b": np.ones(2) + 1e-6}).passed


def test_another_dtype_is_said_and_no_failure() -> None:
    verdict = compare_arrays({"a": np.array([0.5], np.float32)}, {"a": np.array([0.5])})
    assert verdict.passed
    assert verdict.arrays[0].note == "float32 and float64"


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
        with pytest.raises(RequestError, match=r"holds no arrays|is not numbers but"):
            compare_arrays(*pair)


def test_names_that_look_like_a_batch_norm_need_not_be_one() -> None:
    arrays = {"conv1.bias": drawn(3), "bn1.weight": drawn(3)}
    assert compare_arrays(arrays, arrays).passed
    nan = {**arrays, "conv1.weight": np.array([np.inf])}
    found = compare_arrays({**nan, "conv1.bias": drawn(3) + 1}, nan)
    assert [pair.passed for pair in found.arrays] == [False, False, True]
