"""The command line: its help, and that every bad request ends in one line and status 2."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from common.backends.frameworks import FRAMEWORKS
from common.data.download import SHA256, DownloadError
from common.data.synthetic import synthetic
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import save_weights
from common.training.cli import main

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pydantic", "rich", "safetensors", "pooch"}
HEAVY |= {"torch", "tensorflow", "keras", "jax", "jaxlib", "mxnet"}
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax", "mxnet": "mxnet"}
FLAGS = """--devices --device-kind --tf32 --deterministic --threads --preset
    --batch-size --lr --lr-decay --epochs --steps
    --seed --dtype --dataset --data-dir --train-examples --test-examples --init-weights
    --save-weights --out --quiet --allreduce --checkpoint-dir --checkpoint-every --resume
    --resume-from --launcher --coordinator --hosts --host-rank --join-timeout --help"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_help_names_every_flag_and_loads_nothing_heavy(name: str) -> None:
    done = python("-X", "importtime", "-m", f"frameworks.{name}.scratch", "--help")
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "argparse" in loaded
    assert not loaded & HEAVY
    assert set(re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)", done.stdout, re.M)) == set(FLAGS.split())
    assert f"python -m frameworks.{name}.scratch --preset quick" in done.stdout


def status_of(framework: str, flags: Sequence[str], chapter: str = "scratch") -> object:
    try:
        return main(framework, chapter, flags)
    except SystemExit as end:
        return end.code


Refused = Callable[..., str]


def everything_in(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Asserts that a request is refused in one line and touches no file; returns the line."""

    def no_network(*_: object, **__: object) -> None:
        raise DownloadError("no network")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    monkeypatch.setattr("common.data.dataset.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("common.data.dataset.download", no_network)
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 30, 10))
    (tmp_path / "results").mkdir()
    for kind in ("json", "safetensors"):
        (tmp_path / f"results/pytorch-scratch-2dev.{kind}").write_text("of an earlier run")

    def check(*flags: str, framework: str = "pytorch") -> str:
        before = everything_in(tmp_path)
        assert status_of(framework, flags) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(rf"python -m frameworks\.{framework}\.scratch: error: .+\n", err), err
        assert everything_in(tmp_path) == before
        return err

    return check


EARLIER = "results/pytorch-scratch-2dev.json"
WHOLE = "is not a whole number of at least 1"
FLAWS = {
    "--devices 0": f"--devices: '0' {WHOLE}",
    "--device-kind tpu": "choose from .*gpu",
    "--devices 5 --batch-size 4": "fewer --devices or a larger --batch-size",
    "--devices 17 --preset quick": "17 devices cannot share a minibatch of 16",
    "--epochs 1 --steps 1": "--steps: not allowed with argument --epochs",
    "--lr 0": "--lr: '0' is not a number above 0",
    "--lr nan": "'nan' is not a number above 0",
    "--seed 4294967296": "'4294967296' is not a whole number from 0 to 4294967295",
    "--allreduce none": "choose from .*star",
    "--data-dir=~/nowhere": f"--data-dir: there is no {next(iter(SHA256))} in /.+/nowhere",
    "--data-dir x --dataset synthetic": "--data-dir means nothing for --dataset synthetic",
    "--deterministic --device-kind cpu": "--deterministic means nothing for --device-kind cpu",
    "--resume-from .": "--resume-from: . is a folder: name a file in it",
    "--data-dir nowhere": f"--data-dir: there is no {next(iter(SHA256))} in nowhere",
    "--dataset fashion-mnist --quiet": "no network.*--data-dir.*--dataset synthetic",
    "--dataset synthetic --train-examples 31": "--train-examples 31: synthetic has only 30",
    "--save-weights results": "--save-weights: cannot write to results: it is a folder, not a file",
    f"--out {EARLIER}": f"cannot write to {EARLIER}: Not a directory; choose another folder",
    f"--save-weights {EARLIER}/w": f"cannot write to .*/{EARLIER}: Not a directory",
    "--init-weights nowhere": "cannot read weights from nowhere",
    "--step 5": "unrecognized arguments: --step 5",
    "--width 64": "unrecognized arguments: --width 64",
}


@pytest.mark.parametrize(("flags", "complaint"), FLAWS.items(), ids=FLAWS.keys())
def test_a_bad_request_is_refused_in_one_line(refused: Refused, flags: str, complaint: str) -> None:
    assert re.search(complaint, refused(*flags.split()))


@pytest.mark.parametrize("flag", ["--schedule=1f1b", "--stages=2,2"])
def test_what_only_a_pipeline_has_is_refused_for_another_strategy(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of("pytorch", [flag, "--strategy=zero3"], "strategies") == 2
    assert f"{flag.partition('=')[0]} means nothing for --strategy zero3" in capsys.readouterr().err


def test_weights_that_do_not_fit_are_refused_by_tensor(refused: Refused, tmp_path: Path) -> None:
    save_weights(
        tmp_path / "w", {**initial_weights(LENET, 0, "float32"), "fc1.weight": np.zeros((128, 800))}
    )
    (tmp_path / "text").write_text("no weights")
    line = refused("--init-weights", "w")
    assert "fc1.weight in w has shape (128, 800), expected (800, 128)" in line
    assert "cannot read weights from text" in refused("--init-weights", "text")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_that_is_not_installed_is_named(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    monkeypatch.delitem(sys.modules, f"frameworks.{name}.chapters", raising=False)
    line = refused("--dataset", "synthetic", "--quiet", framework=name)
    assert re.search(f"{name} cannot be imported here .*`nox -s {name}` installs it", line)
