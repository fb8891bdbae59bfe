"""Two sets of arrays, compared array by array."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from common.base.arrays import Array, Weights
from common.compare.findings import Check
from common.models.nets import LENET
from common.pairs.arrays import compare_arrays

NORMAL = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).standard_normal(shape)


def only(ours: Weights, expected: Weights) -> Check:
    """The one pair that fails."""
    verdict = compare_arrays(ours, expected)
    (failed,) = [pair for pair in verdict.checks if not pair.passed]
    assert not verdict.passed
    assert verdict.moved == ({failed.array} if "equal" in failed.note else set())
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
        "x": "is only in the first",
    }
    assert renamed.moved == {"a"}


def test_what_cannot_be_told_is_not_said() -> None:
    for ours, expected in (
        (np.zeros((3, 4)), np.zeros((4, 3))),  # any order would do
        (drawn(3, 4), drawn(4, 3, seed=1)),
        (np.full((2, 3), np.nan), np.full((3, 2), np.nan)),
        (drawn(1, 1), drawn(1)),  # a single number tells nothing
        (1 + drawn(9, 2) / 100, 1 + drawn(2, 9, seed=1) / 100),  # any fits, at this tolerance
    ):
        for name in "ab":
            verdict = compare_arrays({name: ours}, {"a": expected}, 0.5)
            assert not any("equal" in pair.note for pair in verdict.checks)


def batch_norm(seed: int) -> Weights:
    parts = ("beta", "gamma", "moving_mean", "moving_variance")
    return {part: drawn(50, seed=seed + n) for n, part in enumerate(parts)}


def net() -> Weights:
    """A net whose convolutions are (out, in, rows, columns); dense layers take channels first."""
    weights = {name: drawn(*shape, seed=n) for n, (name, shape) in enumerate(LENET.items())}
    weights |= {"hidden.weight": drawn(128, 128, seed=30), "out.weight": drawn(128, 128, seed=31)}
    return weights | {f"bn/{part}": values for part, values in batch_norm(20).items()}


def keras(weights: Weights) -> Weights:
    """The net as Keras has it: kernels (rows, columns, in, out), flattened channels last."""
    changed = dict(weights)
    for name in ("conv1.weight", "conv2.weight"):
        changed[name] = weights[name].transpose(2, 3, 1, 0)
    rows = weights["fc1.weight"].reshape(50, 4, 4, 128).transpose(1, 2, 0, 3)
    return {**changed, "fc1.weight": rows.reshape(800, 128)}


def exchanged(weights: Weights, first: str, second: str) -> Weights:
    return {**weights, first: weights[second], second: weights[first]}


FLATTEN = "equal after .reshape(16, 50, 128).transpose(1, 0, 2).reshape(800, 128)"
KERNELS = dict.fromkeys(("conv1.weight", "conv2.weight"), "equal after .transpose(3, 2, 0, 1)")


def told(ours: Weights, expected: Weights) -> tuple[dict[str, str], Collection[str]]:
    """What is said of arrays that fail, and which have moved. Each expression is tried."""
    verdict = compare_arrays(ours, expected)
    notes = {pair.array: pair.note for pair in verdict.checks if not pair.passed}
    for name, note in notes.items():
        how, _, expression = note.partition("equal after ")
        other = how.removesuffix(" is ").partition("the first's ")[2] or name
        if expression:
            changed = eval("values" + expression.partition(";")[0], {"values": ours[other]})
            np.testing.assert_array_equal(changed, expected[name])
    return notes, verdict.moved


PORTS: list[tuple[Callable[[Weights], Weights], dict[str, str]]] = [
    (dict, {}),
    (keras, {**KERNELS, "fc1.weight": FLATTEN}),
    (lambda right: {**right, "fc1.weight": keras(right)["fc1.weight"]}, {"fc1.weight": FLATTEN}),
    (
        lambda right: {**right, "fc1.weight": keras(right)["fc1.weight"].T},
        {"fc1.weight": "equal after .reshape(128, 16, 50).transpose(2, 1, 0).reshape(800, 128)"},
    ),
    (
        lambda right: {**right, "conv2.weight": keras(right)["conv2.weight"].reshape(50, 20, 5, 5)},
        {
            "conv2.weight": "equal after "
            ".reshape(25, 20, 50).transpose(2, 1, 0).reshape(50, 20, 5, 5)"
        },
    ),
    (
        lambda right: exchanged(right, "bn/moving_mean", "bn/moving_variance"),
        {
            "bn/moving_mean": "the first's bn/moving_variance is equal",
            "bn/moving_variance": "the first's bn/moving_mean is equal",
        },
    ),
    (
        lambda right: exchanged(right, "bn/gamma", "conv2.bias"),
        {
            "bn/gamma": "the first's conv2.bias is equal",
            "conv2.bias": "the first's bn/gamma is equal",
        },
    ),
    (
        lambda right: {**right, "hidden.weight": right["hidden.weight"][::-1]},
        {"hidden.weight": ""},
    ),
]


@pytest.mark.parametrize(("port", "notes"), PORTS)
def test_of_a_port_the_order_is_said_that_makes_it_equal(
    port: Callable[[Weights], Weights], notes: dict[str, str]
) -> None:
    right = net()
    found, moved = told(port(right), right)
    assert {name: note.rpartition("; ")[2] for name, note in found.items()} == notes
    assert moved == {name for name, note in notes.items() if note}


def test_all_of_a_port_is_found_under_other_names_also_what_is_constant() -> None:
    right = net() | {"conv1.bias": np.zeros(20), "fc1.bias": np.zeros(128)}
    ours = {f"layer/{name}": values for name, values in keras(right).items()}
    notes, moved = told(ours, right)
    assert (
        notes["fc1.weight"] == f"is only in the second; the first's layer/fc1.weight is {FLATTEN}"
    )
    assert all(
        note.startswith("is only in the second; the first's layer/") for note in notes.values()
    )
    assert moved == {*right}
    del ours["layer/fc1.bias"]
    notes, moved = told(ours, right)
    assert notes["fc1.bias"] == "is only in the second"
    assert moved == {*right} - {"fc1.bias"}


def test_tied_tensors_are_said() -> None:
    embedding, norm = drawn(7, 3), drawn(3, seed=1)
    both = {"embed_tokens": embedding, "norm": norm}
    for ours, expected, which in (
        ({**both, "lm_head": embedding}, both, "first"),
        (both, {**both, "lm_head": embedding}, "second"),
    ):
        notes, moved = told(ours, expected)
        assert notes == {"lm_head": f"is only in the {which}; equals embed_tokens"}
        assert moved == {"lm_head"}
    renamed = {"e": embedding, "h": embedding, "n": norm}
    notes, _ = told(renamed, {**both, "lm_head": embedding})
    assert notes == dict.fromkeys(
        ("embed_tokens", "lm_head"), "is only in the second; the first's e and h are equal"
    ) | {"norm": "is only in the second; the first's n is equal"}


@pytest.mark.parametrize(("dtype", "limit"), [("float16", 2**-10), ("float32", 2**-23)])
def test_the_limit_is_the_epsilon_of_the_coarser_dtype(dtype: str, limit: float) -> None:
    for ours, expected in ((dtype, "float64"), ("float64", dtype), (dtype, dtype)):
        verdict = compare_arrays({"a": drawn(9).astype(ours)}, {"a": drawn(9).astype(expected)})
        assert [pair.tolerance for pair in verdict.checks] == [limit]
        assert verdict.passed
