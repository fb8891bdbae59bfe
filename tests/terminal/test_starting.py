"""Where a command may be started, and how it is refused elsewhere."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from started import ROOT, python

from common.backends.frameworks import FRAMEWORKS

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
