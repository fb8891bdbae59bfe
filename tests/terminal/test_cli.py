"""Where a command may be started; help, refusals in one line, and the last line of all."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import partial
from importlib.metadata import packages_distributions
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
    try:
        ended: object = main("pytorch", "scratch", flags.split())
    except SystemExit as end:
        ended = end.code
    out, err = capsys.readouterr()
    assert (ended, out) == (2, "")
    assert re.fullmatch(rf"python -m frameworks\.pytorch\.scratch: error: .*{complaint}.*\n", err)
    assert {*tmp_path.rglob("*")} == {tmp_path / "results", tmp_path / EARLIER}
    assert (tmp_path / EARLIER).read_text() == "of an earlier run"


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


FOLDERS = ("bench", "common", "frameworks", "notebooks", "planted", "silent")
COMMANDS = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name == "__main__.py" or '\nif __name__ == "__main__":' in path.read_text("utf-8")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_wheel_has_every_command_that_needs_no_clone() -> None:
    packed = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {each.rstrip("*") for each in packed} == {*FOLDERS} - {"notebooks"}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_backend_that_hides_its_framework_says_where_to_start(name: str) -> None:
    done = python("-m", f"{name}.scratch", folder=ROOT / "frameworks")
    line = f"{name} is hidden here: cd .. && python -m frameworks.{name}.scratch\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_a_command_started_as_a_file_finds_every_library(framework: str) -> None:
    libraries = {framework, *sys.stdlib_module_names, *packages_distributions()}
    for folder in {(ROOT / path).parent for path in COMMANDS}:  # it is first on `sys.path`
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        assert libraries.isdisjoint(packages | {path.stem for path in folder.glob("*.py")}), folder


MAJOR, MINOR = map(int, PROJECT["project"]["requires-python"].removeprefix(">=").split("."))
OLD = MAJOR, MINOR - 1
ELSEWHERE = {
    "del os.fork": "this is Windows, which cannot fork a process: "
    "start it on Linux, on macOS, or in WSL",
    f"sys.version_info = {(*OLD, 13)}": f"this is Python {MAJOR}.{MINOR - 1}: "
    f"start it with Python {MAJOR}.{MINOR} or a later one",
}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize(
    "run",
    [
        "run_path('noxfile.py')",
        "run_module('common.grid', run_name='__main__')",
        "run_module('silent.jax_last_microbatch', run_name='__main__')",
        "run_module('frameworks.jax.scratch')",
    ],
)
def test_windows_and_an_older_python_are_refused_in_one_line(run: str, elsewhere: str) -> None:
    nox = "sys.modules['nox'] = types.ModuleType('nox')"
    done = python("-c", f"import os, runpy, sys, types; {elsewhere}; {nox}; runpy.{run}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{ELSEWHERE[elsewhere]}\n")


def test_an_older_python_can_read_the_commands() -> None:
    for path in (Path("noxfile.py"), Path("common/__init__.py"), *COMMANDS):
        ast.parse((ROOT / path).read_text("utf-8"), path.name, feature_version=OLD)


MACOS = """
import sys
sys.platform = "darwin"
sys.addaudithook(lambda event, _: event == "os.fork" and sys.exit("it forks"))
from common.base.children import start

if __name__ == "__main__":
    start(print, "started").join()
"""


def test_on_macos_processes_are_spawned(tmp_path: Path) -> None:
    (tmp_path / "devices.py").write_text(MACOS)
    done = python(str(tmp_path / "devices.py"), PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
