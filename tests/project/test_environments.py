"""An environment is made anew as soon as anything of its recipe changes, and only then."""

import sys
from dataclasses import replace
from pathlib import Path

from nox_support import Environment


def install_python(made: Environment, interpreter: str) -> None:
    """Puts an interpreter there, as `venv` does: a link."""
    made.python.parent.mkdir(parents=True)
    made.python.symlink_to(interpreter)


def test_an_environment_is_complete_until_its_recipe_changes(tmp_path: Path) -> None:
    versions = tmp_path / "versions.txt"
    versions.write_text("numpy==1\n")
    made = Environment(tmp_path / "made", ["numpy"], versions)
    install_python(made, sys.executable)
    assert not made.complete()
    made.confirm()
    assert made.complete()
    assert not replace(made, wanted=["numpy", "rich"]).complete()
    assert not replace(made, alone="d2l").complete()
    versions.write_text("numpy==2\n")
    assert not made.complete()


def test_an_environment_whose_interpreter_is_gone_is_not_complete(tmp_path: Path) -> None:
    versions, interpreter = tmp_path / "versions.txt", tmp_path / "python"
    versions.touch()
    interpreter.symlink_to(sys.executable)
    made = Environment(tmp_path / "made", ["numpy"], versions)
    install_python(made, str(interpreter))
    made.confirm()
    assert made.complete()
    interpreter.unlink()
    assert not made.complete()
    made.python.unlink()
    assert not made.complete()


def test_what_it_is_made_by(tmp_path: Path) -> None:
    made = Environment(tmp_path, ["numpy", "rich"], Path("pins.txt"), alone="d2l")
    create, wanted, alone = made.commands()
    assert create[1:] == ["-m", "venv", "--clear", str(tmp_path)]
    install = [str(made.python), "-m", "pip", "install", "--quiet", "-c", "pins.txt"]
    assert wanted == [*install, "numpy", "rich"]
    assert alone == [*install, "--no-deps", "d2l"]
