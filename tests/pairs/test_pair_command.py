"""`python -m common.parity FILE FILE`: what it says and returns, whatever the files hold."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import edit
from stored import save_bfloat16, save_raw

from common.models.weights_file import save_weights
from common.parity import main
from common.terminal.text import printable

Captured = pytest.CaptureFixture[str]
NASTY = "a\x1b[31m\nb\x07\u202e[red]bold[/red]"
SHOWN = r"a\x1b[31m\nb\x07\u202e[red]bold[/red]"


def refused(capsys: Captured, *flags: object) -> str:
    """The one line that is said before the command ends with status 2."""
    capsys.readouterr()
    try:
        status = main([str(flag) for flag in flags])
    except SystemExit as end:
        status = int(str(end.code))
    said = capsys.readouterr()
    assert (status, said.out, said.err.count("\n")) == (2, "", 1)
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
    edit(ours, data=json.loads(ours.read_text())["data"] | {"sha256": NASTY})
    assert main([str(ours), str(theirs)]) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not comparable, as the settings differ: data is a\\x1b[31m")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "it is a Git LFS pointer"),
        (b"PK\x03\x04 as torch.save writes it", "it is of torch.save"),
        ({"a": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}, "NumPy lacks"),
        ({NASTY: {"dtype": "F64", "shape": [9], "data_offsets": [0, 8]}}, "header"),
    ],
)
def test_what_is_no_file_of_weights_is_said_in_a_line(
    weights: Path, capsys: Captured, content: bytes | dict[str, object], why: str
) -> None:
    bad = weights.with_name("bad.safetensors")
    if isinstance(content, bytes):
        bad.write_bytes(content)
    else:
        save_raw(bad, content, bytes(8))
    assert why in refused(capsys, bad, weights)


def test_bfloat16_is_compared_as_float32_and_said(weights: Path, capsys: Captured) -> None:
    same = np.array([1, -2, 3.140625, 2.0**-133], np.float32)
    stored = save_bfloat16(weights.with_name("stored.safetensors"), {"a": same})
    for status, first in enumerate((same, same + np.float32(1e-6))):
        save_weights(weights, {"a": first})
        assert main([str(weights), str(stored)]) == status
        assert f"{stored} has bfloat16, read as float32: a\n" in capsys.readouterr().out


def test_names_are_shown_as_they_are_and_steer_nothing(tmp_path: Path, capsys: Captured) -> None:
    first, second = (tmp_path / f"{k}{NASTY.replace('/', '')}.safetensors" for k in "12")
    save_weights(first, {NASTY: np.ones(2), "only[bold]": np.ones(1)})
    save_weights(second, {NASTY: np.array([1.0, np.nan])})
    assert main([str(first), str(second)]) == 1
    said = capsys.readouterr().out
    assert all(printable(line) == line for line in said.splitlines())
    assert f"{SHOWN}: NaN or infinity in the second\n" in said
    assert "only[bold]: is in the first alone\n" in said


def test_what_is_asked_for_wrongly_is_said(two: Path, weights: Path, capsys: Captured) -> None:
    record = two / "jax-scratch-2dev.json"
    for pair in ((record, weights), (two, two)):
        assert "are not of the same kind: give two records" in refused(capsys, *pair)
    assert "is a file: name another to" in refused(capsys, weights)
    assert "cannot read weights from no.safetensors" in refused(capsys, weights, "no.safetensors")
    assert "no.json cannot be read" in refused(capsys, record, "no.json")
    assert "'nan' is not a number of at" in refused(capsys, weights, weights, "--tolerance=nan")
    assert "--tolerance means nothing for a folder" in refused(capsys, two, "--tolerance=1")
    assert "--suites means nothing for two" in refused(capsys, weights, weights, "--suites=float64")
    save_weights(weights, {"a": np.zeros((0, 3))})
    assert "nothing was compared" in refused(capsys, weights, weights)
