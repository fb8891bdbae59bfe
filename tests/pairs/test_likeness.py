"""Arrays that are only rearranged, or renamed, are told to be; nothing else is."""

from collections.abc import Callable

import numpy as np
import pytest
from drawn_arrays import drawn, only

from common.base.arrays import Array
from common.pairs.arrays import compare_arrays
from common.pairs.rearranged import likeness


def flattened_last(values: Array) -> Array:
    """LeNet's first dense layer as a net has it whose images are rows, columns, channels."""
    return values.reshape(50, 4, 4, 128).transpose(1, 2, 0, 3).reshape(800, 128)


CHANGES: list[tuple[tuple[int, ...], Callable[[Array], Array], str]] = [
    ((3, 4), np.transpose, "equal after .transpose(1, 0)"),
    ((4, 4), np.transpose, "equal after .transpose(1, 0)"),
    ((5, 2, 3, 3), lambda a: a.transpose(2, 3, 1, 0), "equal after .transpose(3, 2, 0, 1)"),
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
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_only_rearranged_is_said(
    shape: tuple[int, ...], change: Callable[[Array], Array], hint: str, dtype: str
) -> None:
    expected = drawn(*shape)
    ours = change(expected).astype(dtype)
    assert only({"a": ours}, {"a": expected}).hint == hint
    renamed = compare_arrays({"b": ours}, {"a": expected})
    assert [pair.hint for pair in renamed.arrays] == [
        f"the first's b is {hint}",
        "is the second's a",
    ]


def test_what_the_hints_say_can_be_done() -> None:
    expected = drawn(5, 2, 3, 3)
    ours = expected.transpose(2, 3, 1, 0)
    assert np.array_equal(ours.transpose(3, 2, 0, 1), expected)
    rows = drawn(800, 128)
    moved = flattened_last(rows).reshape(16, 50, 128).swapaxes(0, 1).reshape(800, 128)
    assert np.array_equal(moved, rows)


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
