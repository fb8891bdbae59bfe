"""Canonical weights: what they are, and that files of them are read exactly or refused."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stored import save_bfloat16, save_raw

from common.base.arrays import Weights
from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import digest, load_weights, save_weights

DIGEST = "e5ebd705950addb9f018a4933d78b695c947bb43880f3e0ceca3e16371bd3c51"
SMALL = {"weight": (3, 4), "bias": (4,)}


def small(dtype: str = "float32") -> Weights:
    values = np.random.RandomState(0).standard_normal(16).astype(dtype)
    return {"weight": values[:12].reshape(3, 4), "bias": values[12:]}


def test_lenet_has_as_many_numbers_as_the_books() -> None:
    weights = initial_weights(LENET, 0, "float32")
    assert {name: values.shape for name, values in weights.items()} == LENET
    assert sum(values.size for values in weights.values()) == 129_068


def test_weights_are_normal_with_the_books_deviation_and_biases_zero() -> None:
    for name, values in initial_weights(LENET, 3, "float64").items():
        if name.endswith("bias"):
            assert not values.any()
            continue
        scaled, n = values.ravel() / 0.01, values.size
        assert abs(scaled.mean()) < 4 / n**0.5
        assert abs(scaled.std() - 1) < 4 / (2 * n) ** 0.5
        assert abs((abs(scaled) < 1).mean() - 0.6827) < 4 * (0.2166 / n) ** 0.5
        assert len(np.unique(values)) > 0.99 * n


def test_both_dtypes_start_from_the_same_numbers() -> None:
    single, double = initial_weights(LENET, 7, "float32"), initial_weights(LENET, 7, "float64")
    for name in LENET:
        assert single[name].dtype == np.float32
        assert double[name].dtype == np.float64
        assert np.array_equal(single[name].astype(np.float64), double[name])


def test_every_numpy_draws_the_same_weights() -> None:
    assert digest(initial_weights(LENET, 0, "float32")) == DIGEST


@pytest.mark.parametrize("read", ["float32", "float64"])
def test_saved_weights_come_back(tmp_path: Path, read: str) -> None:
    path, weights = tmp_path / "w.safetensors", small()
    save_weights(path, weights)
    assert load_file(path).keys() == SMALL.keys()
    found = load_weights(path, SMALL, read)
    assert list(found) == list(SMALL)
    for name, values in weights.items():
        assert found[name].dtype == read
        assert np.array_equal(found[name], values.astype(read))


def test_views_that_are_not_contiguous_are_saved_as_they_look(tmp_path: Path) -> None:
    path, whole = tmp_path / "w.safetensors", np.arange(24.0).reshape(4, 6)
    weights: Weights = {"weight": whole[:, ::2].T, "bias": whole[::-1, 1]}
    assert not any(values.flags.c_contiguous for values in weights.values())
    save_weights(path, weights)
    found = load_weights(path, SMALL, "float64")
    assert all(np.array_equal(found[name], weights[name]) for name in SMALL)


nan, infinite, huge = (np.full(4, value) for value in (np.nan, -np.inf, 1e39))
WRONG: dict[str, tuple[Weights, str]] = {
    "missing": ({"weight": small()["weight"]}, "^bias is missing from .* must hold weight, bias"),
    "extra": ({**small(), "gamma": np.ones(1)}, "^gamma is not expected in "),
    "transposed": (
        {**small(), "weight": np.ones((4, 3))},
        r"^weight .*\(4, 3\), expected \(3, 4\)",
    ),
    "integer": ({**small(), "bias": np.ones(4, int)}, "^bias .* int64, expected floating point"),
    "nan": ({**small(), "bias": nan}, "^bias in .* holds NaN"),
    "infinite": ({**small(), "bias": infinite}, "^bias in .* infinity"),
    "huge": ({**small(), "bias": huge}, "^bias in .* too large for float32"),
}


@pytest.mark.parametrize(("weights", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_wrong_weights_are_refused_by_file_and_tensor(
    tmp_path: Path, weights: Weights, complaint: str
) -> None:
    path = tmp_path / "w.safetensors"
    save_file(weights, path)
    with pytest.raises(RequestError, match=complaint) as caught:
        load_weights(path, SMALL, "float32")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2"])
def test_a_type_that_numpy_lacks_is_refused(tmp_path: Path, kind: str) -> None:
    tensor = {"dtype": kind, "shape": [4], "data_offsets": [0, 4]}
    path = save_raw(tmp_path / "w.safetensors", {"bias": tensor}, bytes(4))
    # Where ml_dtypes has been loaded, NumPy knows these types; they are refused all the same.
    with pytest.raises(
        RequestError, match=f"cannot read weights from {path}|expected floating point"
    ):
        load_weights(path, {"bias": (4,)}, "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bfloat16_is_read_exactly(tmp_path: Path, dtype: str) -> None:
    values = np.array([1, -2, 3.140625, 2.0**-133])
    path = save_bfloat16(tmp_path / "w.safetensors", {"bias": values})
    (found,) = load_weights(path, {"bias": (4,)}, dtype).values()
    assert found.dtype == dtype
    assert found.tolist() == values.tolist()


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=f"cannot read weights from {tmp_path / 'missing'}"):
        load_weights(tmp_path / "missing", SMALL, "float32")


def test_the_digest_is_of_the_numbers_not_of_their_dtype_or_order() -> None:
    single = small("float32")
    double = {name: single[name].astype(np.float64) for name in reversed(list(single))}
    assert digest(single) == digest(double)


def test_the_digest_sees_names_shapes_and_the_last_bit() -> None:
    weights = small()
    others = [
        {**weights, "weight": np.nextafter(weights["weight"], np.float32(9))},
        {**weights, "weight": weights["weight"].reshape(4, 3)},
        {"kernel": weights["weight"], "bias": weights["bias"]},
        {"weight": weights["weight"]},
    ]
    assert len({digest(each) for each in [weights, *others]}) == 5
