"""What a reader's variables and files say to TensorFlow and Keras, a run does not depend on."""

import json
from pathlib import Path

import pytest
from surroundings import python

from common.base.errors import RequestError
from common.records.record import Record
from common.records.store import read_record, read_tensors
from frameworks.tensorflow import ENVIRONMENT

FLAGS = [
    *("--devices=2", "--width=2", "--steps=1", "--batch-size=8", "--train-examples=8"),
    *("--test-examples=4", "--dataset=synthetic", "--threads=1", "--launcher=none", "--quiet"),
]
NAMED = {"ONEDNN_CPU_ISA_HINTS": "PREFER_YMM"}
"""It may change rounding; on the processors that we have seen, it does not."""

IGNORED = {
    "KERAS_BACKEND": "torch",
    "KERAS_MAX_EPOCHS": "many",
    "KERAS_NNX_ENABLED": "1",
    "TF_USE_LEGACY_KERAS": "1",
    "TF_FUNCTION_JIT_COMPILE_DEFAULT": "1",
    "TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --no_such_flag",
    "TF_ENABLED_DEVICE_TYPES": "GPU",
    "DNNL_DEFAULT_FPMATH_MODE": "BF16",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "TF_SET_ONEDNN_FPMATH_MODE": "BF16",
    "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1",
    "TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "chief"}}),
}
"""What ended a run, or changed its numbers, or might be thought to."""

LEFT_ALONE = {
    "TF_NUM_INTRAOP_THREADS": "3",
    "TF_NUM_INTEROP_THREADS": "3",
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "TF_FORCE_GPU_ALLOW_GROWTH": "false",
    "NVIDIA_TF32_OVERRIDE": "1",
    "XLA_FLAGS": "--no_such_flag",
}

KERAS_JSON = {
    "image_data_format": "channels_first",
    "floatx": "float16",
    "dtype_policy": "mixed_float16",
    "epsilon": 1,
    "backend": "jax",
    "nnx_enabled": True,
}

pytestmark = pytest.mark.only("tensorflow")


def trained(folder: Path, **variables: str) -> tuple[Record, dict[str, bytes]]:
    """The record of a run of the concise chapter, and its tensors to the bit."""
    done = python("-m", "frameworks.tensorflow.concise", *FLAGS, f"--out={folder}", **variables)
    assert done.returncode == 0, done.stderr
    record = read_record(path := folder / "tensorflow-concise-2dev.json")
    tensors = read_tensors(path, record)
    return record, {name: values.tobytes() for name, values in tensors.items()}


def test_a_run_has_the_same_bits_whatever_keras_and_tensorflow_were_told(tmp_path: Path) -> None:
    (settings := tmp_path / "home" / ".keras" / "keras.json").parent.mkdir(parents=True)
    settings.write_text(json.dumps(KERAS_JSON))
    (empty := tmp_path / "empty").mkdir()
    plain, right = trained(tmp_path / "plain", HOME=str(empty), KERAS_HOME="", **NAMED)
    homes = {"HOME": str(tmp_path / "home"), "KERAS_HOME": str(settings.parent)}
    told, bits = trained(tmp_path / "told", **homes, **NAMED, **IGNORED, **LEFT_ALONE)
    assert (told.losses, bits) == (plain.losses, right)
    assert told.environment == plain.environment == NAMED
    assert not [path for path in empty.rglob("*") if path.name == "keras.json"]


def test_a_variable_that_keeps_tensorflow_from_being_loaded_is_named(tmp_path: Path) -> None:
    flags = ("--dataset=synthetic", f"--out={tmp_path}")
    told = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "cpp", "OTHERS_SECRET": "hush"}
    done = python("-m", "frameworks.tensorflow.scratch", *flags, **told)
    line = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, "")
    assert "tensorflow reads PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=cpp, which is set" in line
    assert line.endswith("): set it right, or unset it")
    assert "hush" not in line
    assert list(tmp_path.iterdir()) == []


def test_what_ends_tensorflow_without_an_exception_is_tried_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TF_DETERMINISTIC_OPS", "maybe")
    told = r"TF_DETERMINISTIC_OPS=maybe \(.*Failed to parse the env-var \$\{TF_DETERMINISTIC_OPS\}"
    with pytest.raises(RequestError, match=told):
        ENVIRONMENT.require_harmless("tensorflow")
