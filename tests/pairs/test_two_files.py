"""`python -m common.parity FILE FILE`: two runs, or two files of weights."""

import doctest
import json
from pathlib import Path

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import ROUNDED, edit, make, rewrite
from stored import save_bfloat16, save_raw

from common.base.errors import RequestError, RunError
from common.compare import numpy_nets
from common.compare.findings import Check
from common.compare.runs import NUMERICAL, RecordedRun
from common.models.nets import LENET
from common.models.weights_file import load_arrays, save_weights
from common.pairs.arrays import PairVerdict
from common.pairs.runs import compare_runs, read_run
from common.parity import main
from common.records.record import read_record, read_tensors, write_record

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


def compared(ours: Path, theirs: Path, tolerance: float | None = None) -> PairVerdict:
    return compare_runs(read_run(ours), read_run(theirs), tolerance)


def failed(verdict: PairVerdict) -> list[Check]:
    return [check for check in verdict.checks if not check.passed]


def test_agreeing_runs_are_compared_in_every_array(ours: Path, theirs: Path) -> None:
    edit(ours, source_sha256="0" * 64)
    config = json.loads(theirs.read_text())["config"] | {"framework": "/etc"}
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    edit(theirs, framework="/etc", config=config, environment=flags)
    verdict = compared(ours, theirs)
    assert verdict.passed
    limits = {check.check: check.tolerance for check in verdict.checks}
    assert limits == dict.fromkeys(NUMERICAL, 1e-10)
    assert verdict.notes == [
        "the first: pytorch scratch on cpu:0, float64",
        "the first was made by other code than is here",
        "the second: /etc scratch on cpu:0, cpu:1, float64, "
        "XLA_FLAGS=--xla_cpu_enable_fast_math=true",
        "the second was made by other code than is here",
    ]
    run, right = read_run(ours), read_run(theirs)
    each = [f"{part}/{name}" for part in ("gradients", "weights") for name in LENET]
    for array in ("logits/before", *each, "losses", "logits/after"):
        wrong = RecordedRun(run.record, {**run.arrays, array: run.arrays[array] + 1e-3})
        assert [check.array for check in failed(compare_runs(wrong, right))] == [array]


def test_what_diverges_first_is_named(two: Path, ours: Path, theirs: Path) -> None:
    found = compared(make(two, "pytorch", chapters.SharedMemory(), 2), theirs)
    assert failed(found)[0].array == "losses"
    assert ", first in losses of the first steps: " in found.conclusion
    losses = json.loads(ours.read_text())["losses"]
    edit(ours, losses=[losses[0], losses[1] + 1e-8, losses[2] + 1e-7, losses[3]])
    (pair,) = failed(compared(ours, theirs))
    assert (pair.array, pair.where, pair.note) == ("losses", "step 3", "first at step 2")
    assert compared(ours, theirs, 1e-6).passed
    assert failed(compared(ours, theirs, 2e-8))[0].note == "first at step 3"


def test_runs_that_share_steps_are_not_compared(ours: Path, theirs: Path) -> None:
    begun = json.loads(theirs.read_text())["started"]
    resumption = {"started": begun, "framework": "jax", "devices": 2, "differences": ["a"]}
    edit(ours, resumed=[resumption | {"step": 2}])
    line = "not comparable: one run has trained steps 1 to 2 of both; run one of them from step 1"
    with pytest.raises(RequestError, match=line):
        compared(ours, theirs)
    edit(theirs, resumed=[resumption | {"step": 3, "started": "2030"}])
    edit(ours, resumed=[resumption | {"step": 1, "started": "2030"}])
    with pytest.raises(RequestError, match="one run has trained steps 1 to 1 of both"):
        compared(ours, theirs)
    edit(theirs, resumed=[])
    verdict = compared(ours, theirs)
    assert verdict.passed
    assert verdict.notes[1] == "the first: steps 1 to 1 were trained in another setup (a)"


def test_of_a_long_run_the_beginning_and_the_curve_are_compared(two: Path) -> None:
    long = {"steps": None, "epochs": 6}
    first, second = (
        make(two, name, chapters.NumpyChapter(), 1, **long) for name in ("jax", "mxnet")
    )
    verdict = compared(first, second)
    assert verdict.passed
    limits = {pair.check: pair.tolerance for pair in verdict.checks}
    exact = dict.fromkeys(("forward", "gradient", "trajectory"), 1e-10)
    assert limits == {**exact, "curve": 0.2, "weights": None, "outcome": None}
    losses = json.loads(first.read_text())["losses"]
    edit(first, losses=[*losses[:20], *(2 * loss for loss in losses[20:])])
    assert [pair.where for pair in failed(compared(first, second))] == ["epoch 6"]
    edit(first, losses=[*losses[:19], losses[19] + 1e-6, *losses[20:]])
    assert [pair.note for pair in failed(compared(first, second))] == ["first at step 20"]
    rewrite(first, {"weights/fc2.bias": np.full(10, np.nan)})
    assert "weights/fc2.bias" in [pair.array for pair in failed(compared(first, second))]


def test_two_float32_runs_are_right_with_a_flip_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_nets, "DOUBT", 300)
    first = make(tmp_path, "jax", chapters.Flips(), 1, **ROUNDED)
    second = make(tmp_path, "mxnet", chapters.NumpyConcise(), 1, **ROUNDED)
    verdict = compared(first, second)
    assert verdict.passed
    assert [check.note for check in verdict.checks if check.check == "steps"] == [
        "of the first",
        "of the second",
    ]
    biases = read_tensors(second, read_record(second))["trace/weights/1/fc.bias"]
    rewrite(second, {"trace/weights/1/fc.bias": biases + np.float32(0.01)})
    (check,) = failed(compared(first, second))
    assert (check.check, check.note) == ("steps", "of the second")


def test_steps_that_other_code_has_kept_are_an_error(tmp_path: Path) -> None:
    first, second = (
        make(tmp_path, name, chapters.NumpyChapter(), 1, dtype="float32")
        for name in ("jax", "mxnet")
    )
    tensors = read_tensors(second, read_record(second))
    del tensors["trace/images/3"]
    write_record(second, read_record(second), tensors)
    line = "mxnet-scratch-1dev cannot be compared: trace/images/3 is missing, expected uint8"
    with pytest.raises(RunError, match=line):
        compared(first, second)
    assert compared(first, second, 1e-3).passed
