"""A command that is started with an older Python says so in one line."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
COMMANDS = ("common.parity", "bench", *(f"frameworks.{name}.scratch" for name in FRAMEWORKS))

AS_IF = """\
import runpy, sys, types
sys.version_info = {version}
sys.modules["nox"] = types.ModuleType("nox")  # the common environment does not have it
runpy.{run}
"""


def newest_that_is_too_old() -> tuple[int, int]:
    """The Python before the first that the project is made for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = map(int, project["requires-python"].removeprefix(">=").split("."))
    return major, minor - 1


@pytest.mark.parametrize(
    "run",
    [
        "run_path('noxfile.py')",
        *(f"run_module({name!r}, run_name='__main__')" for name in COMMANDS),
    ],
)
def test_an_older_python_is_refused_in_one_line(run: str) -> None:
    major, minor = newest_that_is_too_old()
    code = AS_IF.format(version=(major, minor, 13), run=run)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    line = (
        f"this is Python {major}.{minor}: start it with Python {major}.{minor + 1} or a later one"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def test_an_older_python_can_read_what_is_read_before_it_is_refused() -> None:
    begun = [ROOT / "noxfile.py", ROOT / "common/__init__.py", *ROOT.glob("*/__main__.py")]
    begun += [ROOT / f"{name.replace('.', '/')}.py" for name in ("common.parity", "common.grid")]
    begun += [path for name in FRAMEWORKS for path in (ROOT / "frameworks" / name).glob("*.py")]
    for path in begun:
        text = path.read_text(encoding="utf-8")
        ast.parse(text, path.name, feature_version=newest_that_is_too_old())
