"""Help, refusals in one line with status 2, and the last line, whatever is in a name."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from fake_chapter import RECORD
from started import ROOT, python

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError, gist
from common.data.download import SHA256, DownloadError
from common.data.synthetic import synthetic
from common.records.record import read_record
from common.terminal.command import LARGEST_SEED, status
from common.training.cli import main

HEAVY = {"numpy", "pydantic", "rich", "safetensors", "pooch", "filelock"}
HEAVY |= {"torch", "tensorflow", "keras", "jax", "jaxlib", "mxnet"}
FLAGS = """--devices --device-kind --tf32 --deterministic --threads --preset
    --batch-size --lr --lr-decay --epochs --steps
    --seed --dtype --dataset --data-dir --train-examples --test-examples --init-weights
    --save-weights --out --quiet --allreduce --checkpoint-dir --checkpoint-every --resume
    --resume-from --help"""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_help_names_every_flag_and_loads_nothing_heavy(name: str) -> None:
    done = python("-X", "importtime", "-m", f"frameworks.{name}.scratch", "--help")
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "argparse" in loaded
    assert not loaded & HEAVY
    assert set(re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)", done.stdout, re.M)) == set(FLAGS.split())
    assert f"python -m frameworks.{name}.scratch --preset quick" in done.stdout


STARTED = ["common/prove.py", *(f"frameworks/{name}/concise.py" for name in FRAMEWORKS)]


@pytest.mark.parametrize("path", STARTED)
def test_a_file_starts_where_the_project_is_not_installed(path: str, tmp_path: Path) -> None:
    done = python("-S", ROOT / path, "--help", folder=tmp_path)
    assert done.stdout.startswith(f"usage: python -m {path[:-3].replace('/', '.')}"), done.stderr


EARLIER = "results/pytorch-scratch-2dev.json"
MISSING = f"--data-dir: there is no {next(iter(SHA256))} in"
FLAWS = {
    "--devices 5 --batch-size 4": "fewer --devices or a larger --batch-size",
    "--epochs 1 --steps 1": "--steps: not allowed with argument --epochs",
    "--lr nan": "--lr: 'nan' is not a number above 0",
    f"--seed {LARGEST_SEED + 1}": f"is not a .* to {LARGEST_SEED} ",
    "--allreduce none": "choose from .*star",
    "--data-dir=~/nowhere": f"{MISSING} /.+/nowhere",
    "--data-dir x --dataset synthetic": "--data-dir means nothing for --dataset synthetic",
    "--resume-from .": "--resume-from: . is a folder: name a file in it",
    "--checkpoint-every 2": "--checkpoint-every needs --checkpoint-dir",
    "--dataset fashion-mnist --quiet": "no network.*--data-dir.*--dataset synthetic",
    "--dataset synthetic --train-examples 31": "--train-examples 31: synthetic has only 30",
    "--save-weights results": "--save-weights: cannot write to results: it is a folder, not a file",
    f"--out {EARLIER}": f"cannot write to {EARLIER}: Not a directory; choose another folder",
    "--init-weights results": "cannot read weights from results: .*it is a folder, not a file",
    "--width 64": "unrecognized arguments: --width 64",
    "--dataset synthetic --quiet": "pytorch cannot be imported .*`nox -s pytorch` installs it",
}


@pytest.mark.parametrize(("flags", "complaint"), FLAWS.items(), ids=FLAWS.keys())
def test_a_bad_request_is_one_line_and_touches_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: str,
    complaint: str,
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise DownloadError("no network")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setattr("common.data.download.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("common.data.download.download", no_network)
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 30, 10))
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "frameworks.pytorch.devices", raising=False)
    (tmp_path / "results").mkdir()
    (tmp_path / EARLIER).write_text("of an earlier run")
    before = everything_in(tmp_path)
    try:
        ended: object = main("pytorch", "scratch", flags.split())
    except SystemExit as end:
        ended = end.code
    out, err = capsys.readouterr()
    assert (ended, out) == (2, "")
    assert re.fullmatch(rf"python -m frameworks\.pytorch\.scratch: error: .*{complaint}.*\n", err)
    assert everything_in(tmp_path) == before


def everything_in(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


FAKE = """
import sys
from functools import partial
import common.data.dataset
from fake_chapter import FLAGS, FakeChapter, synthetic
from numpy_chapter import PLACE, standing_in
from common.training.cli import main
common.data.dataset.synthetic = partial(synthetic, 30, 10)
sys.modules[PLACE] = standing_in(FakeChapter())
raise SystemExit(main("pytorch", "scratch", FLAGS))
"""
FULL = "error: what is printed cannot be written: No space left on device"


@pytest.mark.parametrize("redirected", ["2>&1 | true", "<&- >&- 2>&-", ">/dev/full"])
def test_a_run_that_no_one_reads_is_done_and_quiet(tmp_path: Path, redirected: str) -> None:
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "tests/support"))
    full = redirected == ">/dev/full"
    shell = f'{{ "$@"; echo $? >status; }} {redirected}'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", FAKE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "status").read_text() == f"{int(full)}\n"
    assert done.stderr.count("rror") == full
    assert not full or done.stderr.endswith(f"{FULL}\n")
    assert full or read_record(tmp_path / RECORD).status == "complete"


def test_an_error_is_one_line_whatever_is_in_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise RunError("there is no é\n\x1b[2Ja\u202eb\udcff")

    assert status("command", work) == 1
    shown = r"é\n\x1b[2Ja\u202eb\udcff"
    assert capsys.readouterr().err == f"command: error: there is no {shown}\n"


def test_an_error_of_many_lines_is_told_by_one() -> None:
    for text, line in (
        ("Traceback (most recent call last):\n  File 'a'\nError: no such", "Error: no such"),
        ("\nfirst\nsecond\n", "first"),
        (" \n", "no reason given"),
        ("terminate called after throwing\n  what():  no such file\nAborted", "no such file"),
    ):
        assert gist(text) == line
