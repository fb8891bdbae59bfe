"""Where Jupyter is not installed, each command ends in one line that says who installs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NEEDED = {
    "build": ["nbformat"],
    "execute": ["nbclient", "nbformat"],
    "site": ["nbformat", "sphinx"],
}

WITHOUT = """
import runpy, sys
from importlib import util

found = util.find_spec
util.find_spec = lambda name, *rest: None if name in {missing} else found(name, *rest)
sys.argv = ["{command}", "--check"]
runpy.run_module("notebooks.{command}", run_name="__main__")
"""


@pytest.mark.parametrize("command", NEEDED)
def test_a_command_says_what_is_missing(command: str) -> None:
    missing = NEEDED[command]
    program = WITHOUT.format(command=command, missing=missing)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert all(name in line for name in missing)
    assert "`nox -s notebooks` and `nox -s site` install" in line
