"""`python -m common.parity FILE FILE`."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from agreement import edit
from stored import save_bfloat16, save_raw

from common.models.weights_file import load_arrays, save_weights
from common.parity import main

Captured = pytest.CaptureFixture[str]
PAGE = Path(__file__).parents[2] / "docs/porting.md"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    save_weights(path, {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(3)})
    return path


def test_the_examples_of_the_page_are_true(
    tmp_path: Path, agreeing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "results").symlink_to(agreeing)
    result = doctest.testfile(
        str(PAGE), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert result.attempted >= 20
    assert result.failed == 0


def test_the_tolerance_decides(weights: Path) -> None:
    other = weights.with_name("other.safetensors")
    save_weights(other, {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(3) + 1e-3})
    assert main([str(weights), "--tolerance", "2e-3", str(other)]) == 0
    assert main(["--tolerance=1e-4", str(weights), str(other)]) == 1


def test_runs_of_two_settings_are_not_compared(ours: Path, theirs: Path, capsys: Captured) -> None:
    config = json.loads(ours.read_text())["config"] | {"lr": 0.06}
    edit(ours, config=config, data_sha256="a\x1b[31m", initial_weights_sha256="1" * 64)
    assert main([str(ours), str(theirs)]) == 2
    _, _, _, said = capsys.readouterr().out.splitlines()
    lr, data, weights = said.split("; ")
    assert lr == "not comparable, as the settings differ: lr is 0.06 and 0.05"
    assert data.startswith("data is a\\x1b[31m and ")
    assert weights.startswith("initial weights is 111111111111 and ")
    assert weights.endswith(": start both from one file with --init-weights")


def test_bfloat16_is_compared_by_its_epsilon_and_said(weights: Path, capsys: Captured) -> None:
    same = np.array([1, -2, 3.140625, 2.0**-133], np.float32)
    stored = save_bfloat16(weights.with_name("stored.safetensors"), {"a": same})
    for status, far in enumerate((2**-7, 2**-6)):
        save_weights(weights, {"a": same + np.float32(3 * far)})
        for pair in (weights, stored), (stored, weights):
            assert main(list(map(str, pair))) == status
            said = capsys.readouterr().out
            assert f"{stored} has bfloat16, read as float32: a\n" in said
            assert "≤ 7.8e-03" in said


def test_the_files_of_an_index_are_one_model(weights: Path, capsys: Captured) -> None:
    files = {"a": "part-1.safetensors", "b": "part-2.safetensors"}
    for name, file in files.items():
        save_weights(weights.with_name(file), {name: load_arrays(weights)[name]})
    index = weights.with_name("model.safetensors.index.json")
    index.write_text(json.dumps({"weight_map": files}))
    assert main([str(index), str(weights)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "the same: all 2 arrays are equal"
    weights.with_name("part-2.safetensors").unlink()
    assert main([str(weights), str(index)]) == 2
    assert "cannot read weights from" in capsys.readouterr().err


F8 = {"a": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("torch.safetensors w.safetensors", "it is no .safetensors file"),
        ("f8.safetensors w.safetensors", "NumPy lacks"),
        ("empty.safetensors empty.safetensors", "nothing was compared"),
        ("no.safetensors w.safetensors", "cannot read weights from no.safetensors"),
        ("no.json no.json", "no.json cannot be read"),
        ("no.json w.safetensors", "are not of the same kind: give two records"),
        ("w.safetensors", "is a file: name another to"),
        ("w.safetensors w.safetensors --tolerance=nan", "'nan' is not a number of at"),
        ("w.safetensors w.safetensors --planned", "--planned means nothing for two"),
        (". --tolerance=1", "--tolerance means nothing for a folder"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torch.safetensors").write_bytes(b"PK\x03\x04 as torch.save writes it")
    save_raw(Path("f8.safetensors"), F8, bytes(8))
    save_weights(Path("w.safetensors"), {"a": np.ones(3)})
    save_weights(Path("empty.safetensors"), {"a": np.zeros((0, 3))})
    try:
        status = main(words.split())
    except SystemExit as end:
        status = int(str(end.code))
    said = capsys.readouterr()
    assert (status, said.out, said.err.count("\n")) == (2, "", 1)
    assert why in said.err
