"""Canonical weights: what they are, and that files of them are read exactly or refused."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from safetensors.numpy import load_file, save_file

from common.base.arrays import Weights
from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import digest, load_arrays, load_weights, save_weights

DIGEST = "e5ebd705950addb9f018a4933d78b695c947bb43880f3e0ceca3e16371bd3c51"
SMALL = {"weight": (3, 4), "bias": (4,)}


def small(dtype: str = "float32") -> Weights:
    values = np.random.RandomState(0).standard_normal(16).astype(dtype)
    return {"weight": values[:12].reshape(3, 4), "bias": values[12:]}


def test_names_shapes_and_count_are_the_contract() -> None:
    assert LENET == {
        "conv1.weight": (20, 1, 3, 3),
        "conv1.bias": (20,),
        "conv2.weight": (50, 20, 5, 5),
        "conv2.bias": (50,),
        "fc1.weight": (800, 128),
        "fc1.bias": (128,),
        "fc2.weight": (128, 10),
        "fc2.bias": (10,),
    }
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


def test_the_seed_decides_the_weights() -> None:
    again, other = initial_weights(LENET, 1, "float32"), initial_weights(LENET, 2, "float32")
    for name, values in initial_weights(LENET, 1, "float32").items():
        assert np.array_equal(values, again[name])
        assert np.array_equal(values, other[name]) == name.endswith("bias")


def test_every_numpy_draws_the_same_weights() -> None:
    assert digest(initial_weights(LENET, 0, "float32")) == DIGEST


@pytest.mark.parametrize("written", ["float32", "float64"])
@pytest.mark.parametrize("read", ["float32", "float64"])
def test_saved_weights_come_back(tmp_path: Path, written: str, read: str) -> None:
    path, weights = tmp_path / "w.safetensors", small(written)
    save_weights(path, weights)
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


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Weights, file: Path) -> None:
        file.write_bytes(b"half of i")
        raise OSError("the disk is full")

    path = tmp_path / "w.safetensors"
    save_weights(path, small())
    before = path.read_bytes()
    monkeypatch.setattr("common.models.weights_file.save_file", fail)
    with pytest.raises(OSError, match="full"):
        save_weights(path, small())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


nan, infinite, huge = (np.full(4, value) for value in (np.nan, -np.inf, 1e39))
signalling = np.frombuffer(bytes.fromhex("010000000000f07f") * 4, "<f8")  # NaN that NumPy tells of
WRONG: dict[str, tuple[Weights, str]] = {
    "missing": ({"weight": small()["weight"]}, "^bias is missing from .* must hold weight, bias"),
    "extra": ({**small(), "gamma": np.ones(1)}, "^gamma is not expected in "),
    "renamed": ({"weight": small()["weight"], "b": np.ones(4)}, "^b is not expected in "),
    "transposed": (
        {**small(), "weight": np.ones((4, 3))},
        r"^weight .*\(4, 3\), expected \(3, 4\)",
    ),
    "flat": ({**small(), "weight": np.ones(12)}, r"^weight .*\(12,\), expected \(3, 4\)"),
    "integer": ({**small(), "bias": np.ones(4, int)}, "^bias .* int64, expected floating point"),
    "boolean": ({**small(), "bias": np.ones(4, bool)}, "^bias .* bool, expected floating point"),
    "nan": ({**small(), "bias": nan}, "^bias in .* holds NaN"),
    "signalling": ({**small(), "bias": signalling}, "^bias in .* holds NaN"),
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


@pytest.mark.parametrize(("kind", "width"), [("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1)])
def test_a_type_that_numpy_lacks_is_refused(tmp_path: Path, kind: str, width: int) -> None:
    path = tmp_path / "w.safetensors"
    tensor = {"dtype": kind, "shape": [4], "data_offsets": [0, 4 * width]}
    header = json.dumps({"bias": tensor}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * width))
    # Where ml_dtypes has been loaded, NumPy knows these types; they are refused all the same.
    with pytest.raises(
        RequestError, match=f"cannot read weights from {path}|expected floating point"
    ):
        load_weights(path, {"bias": (4,)}, "float32")


@pytest.mark.parametrize("sizes", [[0, 2**60], [2**30, 0, 2**31]])
def test_an_impossible_size_beside_a_0_is_refused(tmp_path: Path, sizes: list[int]) -> None:
    path = tmp_path / "w.safetensors"
    header = json.dumps({"bias": {"dtype": "F32", "shape": sizes, "data_offsets": [0, 0]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(RequestError, match=f"cannot read weights from {path}"):
        load_arrays(path)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(path, small())
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RequestError, match=f"cannot read weights from {path}"):
            load_weights(path, SMALL, "float32")


@given(content=st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=str(path)):
        load_weights(path, SMALL, "float32")


@pytest.mark.parametrize("name", ["missing", "", "file/below"])
def test_a_path_without_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match=f"cannot read weights from {tmp_path / name}"):
        load_weights(tmp_path / name, SMALL, "float32")


def test_a_saved_file_holds_the_names_alone(tmp_path: Path) -> None:
    save_weights(tmp_path / "w.safetensors", small())
    assert load_file(tmp_path / "w.safetensors").keys() == SMALL.keys()
