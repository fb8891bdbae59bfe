"""Canonical weights, and files of them."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from common.base.arrays import Weights
from common.base.errors import RequestError
from common.models.nets import LENET, resnet18_shapes
from common.models.weights_file import (
    digest,
    initial_weights,
    load_arrays,
    load_weights,
    save_weights,
)

DIGEST = "e5ebd705950addb9f018a4933d78b695c947bb43880f3e0ceca3e16371bd3c51"
SMALL = {"weight": (3, 4), "bias": (4,)}


def small(dtype: str = "float32") -> Weights:
    values = np.random.RandomState(0).standard_normal(16).astype(dtype)
    return {"weight": values[:12].reshape(3, 4), "bias": values[12:]}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_numpy_draws_the_books_weights_in_either_dtype(dtype: str) -> None:
    weights = initial_weights(LENET, 0, dtype)
    assert {name: values.shape for name, values in weights.items()} == LENET
    assert digest(weights) == DIGEST


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batch_norm_starts_as_the_identity(dtype: str) -> None:
    for name, values in initial_weights(resnet18_shapes(4), 0, dtype).items():
        assert values.dtype == np.dtype(dtype)
        if values.ndim > 1:
            assert 0.005 < values.std() < 0.02
        else:
            ones = name.endswith((".running_var", "bn1.weight", "bn2.weight"))
            assert (values == ones).all(), name


@pytest.mark.parametrize("read", ["float32", "float64"])
def test_saved_weights_come_back_also_if_they_are_views(tmp_path: Path, read: str) -> None:
    path, whole = tmp_path / "w.safetensors", np.arange(24.0).reshape(4, 6)
    weights: Weights = {"weight": whole[:, ::2].T, "bias": whole[::-1, 1]}
    assert not any(values.flags.c_contiguous for values in weights.values())
    save_weights(path, weights)
    found = load_weights(path, SMALL, read)
    assert {name: values.dtype.name for name, values in found.items()} == dict.fromkeys(SMALL, read)
    assert all(np.array_equal(found[name], weights[name]) for name in SMALL)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"bias": None}, "^bias is missing from "),
        ({"gamma": np.ones(1)}, "^gamma is not expected in "),
        ({"weight": np.ones((4, 3))}, r"^weight .*\(4, 3\), expected \(3, 4\)"),
        ({"bias": np.ones(4, int)}, "^bias .* int64, expected floating point"),
        ({"bias": np.full(4, np.nan)}, "^bias in .* holds NaN"),
        ({"bias": np.full(4, 1e39)}, "^bias in .* too large for float32"),
    ],
)
def test_wrong_weights_are_refused_by_file_and_tensor(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    path, weights = tmp_path / "w.safetensors", {**small(), **changes}
    save_file({name: values for name, values in weights.items() if values is not None}, path)
    with pytest.raises(RequestError, match=complaint) as caught:
        load_weights(path, SMALL, "float32")
    assert str(path) in str(caught.value)


def sharded(folder: Path, index: object = None) -> Path:
    """An index, by default of two files; a third one beside them is no `.safetensors` file."""
    for number, (name, values) in enumerate(small().items(), 1):
        save_weights(folder / f"m-{number}.safetensors", {name: values})
    (folder / "m.bin").write_bytes(b"\x80\x04.")
    path = folder / "model.safetensors.index.json"
    weight_map = {"weight": "m-1.safetensors", "bias": "m-2.safetensors"}
    path.write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map} if index is None else index)
    )
    return path


@pytest.mark.parametrize(
    ("weight_map", "complaint"),
    [
        (["m-1.safetensors"], "it is no index: JSON with a weight_map"),
        ({"weight": "m-1.safetensors", "bias": "m-3.safetensors"}, "m-3.safetensors.*No such file"),
        ({"weight": "m-1.safetensors", "bias": "m-1.safetensors"}, "bias is not in .*m-1.safetens"),
        ({"gamma": "m-1.safetensors"}, "gamma is not in "),
        ({"weight": "../m-1.safetensors"}, "no .safetensors file beside it"),
        ({"weight": "m.bin"}, "names m.bin, which is no .safetensors file"),
        ({"weight": "\0.safetensors"}, "null byte"),
    ],
)
def test_an_index_whose_files_do_not_fit_is_refused(
    tmp_path: Path, weight_map: object, complaint: str
) -> None:
    path = sharded(tmp_path, {"weight_map": weight_map})
    with pytest.raises(RequestError, match=complaint):
        load_arrays(path)


def test_what_a_file_has_beside_its_index_is_not_left_out(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    save_weights(tmp_path / "m-2.safetensors", {"bias": np.ones(4), "scale": np.ones(4)})
    with pytest.raises(RequestError, match=r"^scale is not in the index, but in "):
        load_arrays(path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """To read a pipe without a writer would never end."""
    path = tmp_path / "w.safetensors"
    with pytest.raises(RequestError, match=f"cannot read weights from {path}"):
        load_weights(path, SMALL, "float32")
    os.mkfifo(path)
    with pytest.raises(RequestError, match="it is a pipe or a device, not a file"):
        load_arrays(path)


def test_the_digest_sees_names_shapes_and_the_last_bit_but_no_dtype() -> None:
    weights = small()
    double = {name: weights[name].astype(np.float64) for name in reversed(list(weights))}
    assert digest(weights) == digest(double)
    others = [
        {**weights, "weight": np.nextafter(weights["weight"], np.float32(9))},
        {**weights, "weight": weights["weight"].reshape(4, 3)},
        {"kernel": weights["weight"], "bias": weights["bias"]},
        {"weight": weights["weight"]},
    ]
    assert len({digest(each) for each in [weights, *others]}) == 5
