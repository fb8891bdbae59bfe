"""Two sets of arrays, compared array by array."""

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from common.base.arrays import Array, Weights
from common.models.nets import LENET
from common.pairs.arrays import compare_arrays

NORMAL = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.RandomState(seed).standard_normal(shape)


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


def test_what_has_no_distance_fails() -> None:
    for ours, expected, note in (
        (np.nan, -np.inf, "NaN or infinity in the first and the second"),
        (1e308, -1e308, ""),
    ):
        notes, _ = told({"a": np.array([ours])}, {"a": np.array([expected])})
        assert notes == {"a": note}


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


def net() -> Weights:
    """A net whose convolutions are (out, in, rows, columns); dense layers take channels first."""
    weights = {name: drawn(*shape, seed=n) for n, (name, shape) in enumerate(LENET.items())}
    weights |= {"hidden.weight": drawn(128, 128, seed=30), "out.weight": drawn(128, 128, seed=31)}
    parts = "beta", "gamma", "moving_mean", "moving_variance"
    return weights | {f"bn/{part}": drawn(50, seed=n) for n, part in enumerate(parts, 20)}


def keras(weights: Weights) -> Weights:
    """The net as Keras has it: kernels (rows, columns, in, out), flattened channels last."""
    changed = dict(weights)
    for name in ("conv1.weight", "conv2.weight"):
        changed[name] = weights[name].transpose(2, 3, 1, 0)
    rows = weights["fc1.weight"].reshape(50, 4, 4, 128).transpose(1, 2, 0, 3)
    return {**changed, "fc1.weight": rows.reshape(800, 128)}


RIGHT = net()
KERAS = keras(RIGHT)
FLATTEN = "equal after .reshape(16, 50, 128).transpose(1, 0, 2).reshape(800, 128)"
KERNELS = dict.fromkeys(("conv1.weight", "conv2.weight"), "equal after .transpose(3, 2, 0, 1)")
PORTS: list[tuple[Weights, dict[str, str]]] = [
    ({}, {}),
    (KERAS, {**KERNELS, "fc1.weight": FLATTEN}),
    (
        {"fc1.weight": KERAS["fc1.weight"].T},
        {"fc1.weight": "equal after .reshape(128, 16, 50).transpose(2, 1, 0).reshape(800, 128)"},
    ),
    ({"fc2.bias": RIGHT["fc2.bias"][None]}, {"fc2.bias": "equal after .reshape(10,)"}),
    ({"hidden.weight": RIGHT["hidden.weight"][::-1]}, {"hidden.weight": ""}),
]
"""Arrays that a port has changed, and what is said of them."""

for a, b in (("bn/moving_mean", "bn/moving_variance"), ("bn/gamma", "conv2.bias")):
    PORTS += [
        (
            {a: RIGHT[b], b: RIGHT[a]},
            {a: f"the first's {b} is equal", b: f"the first's {a} is equal"},
        )
    ]


def told(ours: Weights, expected: Weights) -> tuple[dict[str, str], Collection[str]]:
    """What is said of arrays that fail, and which have moved. Each expression is tried."""
    verdict = compare_arrays(ours, expected)
    notes = {pair.array: pair.note for pair in verdict.checks if not pair.passed}
    for name, note in notes.items():
        how, _, expression = note.partition("equal after ")
        other = how.removesuffix(" is ").partition("the first's ")[2] or name
        if expression:
            changed = eval("values" + expression.partition(";")[0], {"values": ours[other]})
            np.testing.assert_allclose(changed, expected[name], 1e-6)
    return notes, verdict.moved


@pytest.mark.parametrize(("changes", "notes"), PORTS)
def test_of_a_port_the_order_is_said_that_makes_it_equal(
    changes: Weights, notes: dict[str, str]
) -> None:
    found, moved = told(RIGHT | changes, RIGHT)
    assert {name: note.rpartition("; ")[2] for name, note in found.items()} == notes
    assert moved == {name for name, note in notes.items() if note}


def test_all_of_a_port_is_found_under_other_names_also_what_is_constant() -> None:
    right = RIGHT | {"conv1.bias": np.zeros(20), "fc1.bias": np.zeros(128)}
    ours = {f"layer/{name}": values.astype("float32") for name, values in keras(right).items()}
    notes, moved = told(ours, right)
    only = "is only in the second"
    assert notes["fc1.weight"] == f"{only}; the first's layer/fc1.weight is {FLATTEN}"
    assert all(note.startswith(f"{only}; the first's layer/") for note in notes.values())
    assert moved == {*right}
    del ours["layer/fc1.bias"]
    notes, moved = told({**ours, "x": drawn(9)}, right)
    assert (notes["fc1.bias"], notes["x"]) == (only, "is only in the first")
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
