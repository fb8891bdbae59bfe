"""A command starts from its file as well, and an older Python gets one line."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "common", "frameworks", "notebooks", "silent")
COMMANDS = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name == "__main__.py" or '\nif __name__ == "__main__":' in path.read_text("utf-8")
)
INTERNAL = Path("frameworks/mxnet/server.py")
"""Another process starts it, and gives it pipes."""


def started(*words: str, folder: Path = ROOT, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment | more,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("path", [each for each in COMMANDS if each != INTERNAL], ids=str)
def test_every_command_finds_the_project_before_its_first_import_of_it(path: Path) -> None:
    start, found, rest = (
        (ROOT / path)
        .read_text("utf-8")
        .partition(
            "\nif not __package__:  # run as a file, as an editor does\n"
            f"    sys.path.insert(0, str(Path(__file__).parents[{len(path.parts) - 1}]))\n"
        )
    )
    assert found
    assert "import sys\n" in start
    assert "from pathlib import Path\n" in start
    assert not [line for line in start.splitlines() if line.startswith(OURS)]
    assert [line for line in rest.splitlines() if line.strip().startswith(OURS)]


OURS = tuple(f"{verb} {folder}" for verb in ("from", "import") for folder in FOLDERS)


def test_the_wheel_has_every_command_that_needs_no_clone() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    packed = settings["setuptools"]["packages"]["find"]["include"]
    assert {each.rstrip("*") for each in packed} == {*FOLDERS} - {"notebooks"}


@pytest.mark.parametrize("safe", [(), ("-P",)], ids=["plain", "-P"])
@pytest.mark.parametrize(
    ("folder", "path"),
    [
        (".", "frameworks/pytorch/scratch.py"),
        ("frameworks", "jax/concise.py"),
        ("frameworks/mxnet", "strategies.py"),
        ("common", "plan.py"),
        ("silent", "../common/grid.py"),
        ("docs", "../bench/__main__.py"),
    ],
)
def test_a_command_runs_as_a_file(folder: str, path: str, safe: tuple[str, ...]) -> None:
    done = started(*safe, path, "--help", folder=ROOT / folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m ")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_backend_that_hides_its_framework_says_where_to_start(name: str) -> None:
    done = started("-m", f"{name}.scratch", folder=ROOT / "frameworks")
    line = f"{name} is hidden here: cd .. && python -m frameworks.{name}.scratch\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


AS_IF = """\
import runpy, sys, types
sys.version_info = {version}
sys.modules["nox"] = types.ModuleType("nox")  # the common environment does not have it
runpy.{run}
"""


def test_an_older_python_is_refused_in_one_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, project["requires-python"].removeprefix(">=").split("."))
    line = (
        f"this is Python {major}.{minor - 1}: start it with Python {major}.{minor} or a later one"
    )
    for run in ("run_path('noxfile.py')", "run_module('common.parity', run_name='__main__')"):
        done = started("-c", AS_IF.format(version=(major, minor - 1, 13), run=run))
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")
    for path in (Path("noxfile.py"), Path("common/__init__.py"), *COMMANDS):
        text = (ROOT / path).read_text(encoding="utf-8")
        ast.parse(text, path.name, feature_version=(major, minor - 1))
