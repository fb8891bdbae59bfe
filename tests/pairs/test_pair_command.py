"""`python -m common.parity FILE FILE`: what it says and returns, whatever the files hold."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit
from stored import save_bfloat16

from common.models.weights_file import save_weights
from common.parity import main
from common.terminal.text import printable

Captured = pytest.CaptureFixture[str]
NASTY = "a\x1b[31m\nb\x07\u202e[red]bold[/red]"
SHOWN = r"a\x1b[31m\nb\x07\u202e[red]bold[/red]"


def header(**tensors: Any) -> bytes:
    """A `.safetensors` file with this header and eight bytes after it."""
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def refused(capsys: Captured, *flags: object) -> str:
    """The one line that is said before the command ends with status 2."""
    capsys.readouterr()
    try:
        status = main([str(flag) for flag in flags])
    except SystemExit as end:
        status = int(str(end.code))
    said = capsys.readouterr()
    assert status == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert printable(said.err[:-1]) == said.err[:-1]
    return said.err


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    save_weights(path, {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(3)})
    return path


def test_the_status_says_whether_files_are_the_same(weights: Path, capsys: Captured) -> None:
    other = weights.with_name("other.safetensors")
    save_weights(other, {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(3) + 1e-3})
    assert main([str(weights), str(weights)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "the same: all 2 arrays are equal"
    assert main([str(weights), str(other)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("they diverge in 1 of 2 arrays, first in b: 1.0e-03 at [0]")
    assert [line[2] for line in said if line.startswith("│ ")] == ["b", "a"]  # the farthest first
    assert main([str(weights), "--tolerance", "2e-3", str(other)]) == 0
    assert main(["--tolerance=1e-4", str(weights), str(other)]) == 1


def test_runs_are_shown_check_by_check(ours: Path, theirs: Path, capsys: Captured) -> None:
    assert main([str(ours), str(theirs)]) == 0
    said = capsys.readouterr().out
    headings = ("logits before", "gradient of", "losses of", "weights at", "logits at")
    places = [said.index(heading) for heading in headings]
    assert places == sorted(places)
    edit(ours, losses=[1.0, 1.0, 1.0, 1.0])
    assert main([str(ours), str(theirs)]) == 1
    assert "losses: first at step 1\n" in capsys.readouterr().out


def test_runs_of_another_setting_are_no_comparison(
    ours: Path, theirs: Path, capsys: Captured
) -> None:
    data = json.loads(ours.read_text())["data"]
    edit(ours, data=data | {"sha256": NASTY})
    assert main([str(ours), str(theirs)]) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not comparable, as the settings differ: data is a\\x1b[31m")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "it is a Git LFS pointer"),
        (b"\n<!DOCTYPE html><title>404</title>", "it is an HTML or XML page"),
        (b"PK\x03\x04 as torch.save writes it", "it is of torch.save"),
        (header(a={"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}), "not fully covered"),
        (header(a={"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}), "NumPy lacks"),
        (header(**{NASTY: {"dtype": "F64", "shape": [9], "data_offsets": [0, 8]}}), "header"),
        (struct.pack("<Q", 2) + b"{}", "holds no arrays"),
    ],
)
def test_what_is_no_file_of_weights_is_said_in_a_line(
    weights: Path, capsys: Captured, content: bytes, why: str
) -> None:
    bad = weights.with_name("bad.safetensors")
    bad.write_bytes(content)
    assert why in refused(capsys, bad, weights)
    assert why in refused(capsys, weights, bad)


def test_bfloat16_is_compared_as_float32_and_said(weights: Path, capsys: Captured) -> None:
    same = np.array([1, -2, 3.140625, 2.0**-133], np.float32)
    stored = save_bfloat16(weights.with_name("stored.safetensors"), {"a": same})
    for first, status in ((same, 0), (same + np.float32(1e-6), 1)):
        save_weights(weights, {"a": first})
        assert main([str(weights), str(stored)]) == status
        said = capsys.readouterr().out
        assert f"{stored} has bfloat16, read as float32: a\n" in said
        assert ("the same: all 1 arrays are equal" in said) == (status == 0)


def test_files_with_only_empty_arrays_are_no_comparison(weights: Path, capsys: Captured) -> None:
    save_weights(weights, {"a": np.zeros((0, 3))})
    assert "nothing was compared: all arrays" in refused(capsys, weights, weights)


def test_names_are_shown_as_they_are_and_steer_nothing(tmp_path: Path, capsys: Captured) -> None:
    first, second = (tmp_path / f"{k}{NASTY.replace('/', '')}.safetensors" for k in "12")
    save_weights(first, {NASTY: np.ones(2), "only[bold]": np.ones(1)})
    save_weights(second, {NASTY: np.array([1.0, np.nan])})
    assert main([str(first), str(second)]) == 1
    said = capsys.readouterr().out
    assert all(printable(line) == line for line in said.splitlines())
    assert f"{SHOWN}: NaN or infinity in the second\n" in said
    assert "│ only[bold] " in said
    assert "only[bold]: is in the first alone\n" in said
    first.write_bytes(b"")
    assert r"1a\x1b[31m\nb" in refused(capsys, first, second)


def test_what_is_no_record_or_spoiled_is_said_in_a_line(
    ours: Path, theirs: Path, capsys: Captured
) -> None:
    whole = ours.read_text()
    for content, why in (
        ("{" * 100_000, "JSON"),
        ("[]", "not a record of schema 6"),
        (json.dumps({NASTY: 1}), "not a record of schema 6"),
        (whole.replace('"losses": [', '"losses": [NaN, '), "is not a record of schema 6: losses"),
        (whole.replace('"status": "complete"', '"status": "failed"'), "it does not say why"),
    ):
        ours.write_text(content)
        assert why in refused(capsys, ours, theirs)
        assert why in refused(capsys, theirs, ours)
    ours.write_text(whole)
    tensors = ours.with_suffix(".safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1])
    why = "is not the file that pytorch-scratch-1dev.json describes"
    assert why in refused(capsys, ours, theirs)


def test_what_is_asked_for_wrongly_is_said(two: Path, weights: Path, capsys: Captured) -> None:
    record = two / "jax-scratch-2dev.json"
    for pair in ((record, weights), (two, record), (two, two), (weights, "/dev/null")):
        assert "are not of the same kind: give two records" in refused(capsys, *pair)
    assert "is a file: name another to" in refused(capsys, weights)
    assert "cannot read weights from no.safetensors" in refused(capsys, weights, "no.safetensors")
    assert "no.json cannot be read" in refused(capsys, record, "no.json")
    for value in ("-1", "nan", "inf", "x"):
        said = refused(capsys, weights, weights, f"--tolerance={value}")
        assert f"'{value}' is not a number of at least 0" in said
    assert "--tolerance means nothing for a folder" in refused(capsys, two, "--tolerance=1")
    for flag in ("--more-devices", "--suites=float64", "--frameworks=jax", "--chapters=scratch"):
        said = refused(capsys, weights, weights, flag)
        assert f"{flag.partition('=')[0]} means nothing for two files" in said
    folder = weights.with_name("folder.safetensors")
    folder.mkdir()
    assert "cannot read weights from" in refused(capsys, folder, weights)


def test_help_shows_both_uses(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "python -m common.parity [--tolerance X] FILE FILE" in said
    assert "exit status: 0: the same; 1: they diverge; 2: they cannot be read" in said
    assert "python -m common.parity mine.safetensors theirs.safetensors --tolerance" in said
