"""An environment is made anew as soon as anything of its recipe changes, and only then."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nox_support import Environment, places_of_pip


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


@pytest.mark.parametrize("uv", [True, False])
def test_uv_makes_it_where_it_can_and_else_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: bool
) -> None:
    monkeypatch.setattr("nox_support.find_spec", lambda name: uv or None)
    versions = tmp_path / "pins.txt"
    versions.touch()
    made = Environment(tmp_path / "made", ["numpy", "rich"], versions, alone="d2l")
    ran: list[list[str]] = []

    def run(*command: str) -> None:
        ran.append(list(command))
        if "uv" in command and "numpy" in command:
            raise OSError("there is no such package")

    made.make(run)
    tried, pip = ran[:-3], ran[-3:]
    assert len(tried) == 2 * uv
    assert all(command[1:3] == ["-m", "uv"] for command in tried)
    assert pip[0][1:] == ["-m", "venv", "--clear", str(made.folder)]
    for command, wanted in zip(pip[1:], (["numpy", "rich"], ["--no-deps", "d2l"]), strict=True):
        assert command[:4] == [str(made.python), "-m", "pip", "install"]
        assert command[command.index("-c") :] == ["-c", str(versions), *wanted]


def test_what_pip_cannot_make_is_not_complete(tmp_path: Path) -> None:
    def run(*_: str) -> None:
        raise OSError("no place")

    with pytest.raises(OSError, match="no place"):
        Environment(tmp_path / "made", [], tmp_path / "pins.txt").make(run)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("listed", "options"),
    [
        ("", []),
        ("global.timeout='60'", []),
        (
            ":env:.extra-index-url='https://one.example https://two.example'\n"
            "global.extra-index-url='https://three.example'\nglobal.find-links='/wheels'",
            ["--index=https://one.example", "--index=https://two.example", "--find-links=/wheels"],
        ),
        (
            "global.index-url='https://one.example'\ninstall.index-url='https://two.example'",
            ["--default-index=https://two.example"],
        ),
    ],
)
def test_uv_looks_where_pip_does(
    monkeypatch: pytest.MonkeyPatch, listed: str, options: list[str]
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command == [sys.executable, "-m", "pip", "config", "list"]
        return subprocess.CompletedProcess(command, 0, stdout=listed)

    monkeypatch.setattr(subprocess, "run", run)
    best = ["--index-strategy=unsafe-best-match"] if options else []
    assert places_of_pip() == options + best
