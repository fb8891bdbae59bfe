"""An environment is made anew as soon as anything of its recipe changes, and only then."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sessions.support import Environment, sources_of_pip


def install_python(made: Environment, interpreter: str) -> None:
    """Puts an interpreter there, as `venv` does: a link."""
    made.python.parent.mkdir(parents=True)
    made.python.symlink_to(interpreter)


def test_an_environment_is_complete_until_its_recipe_changes(tmp_path: Path) -> None:
    files = pins, build, alone = [tmp_path / f"{name}.txt" for name in ("pins", "build", "alone")]
    for file in files:
        file.write_text("numpy==1\n")
    made = Environment(tmp_path / "made", [pins], [build], [alone])
    install_python(made, sys.executable)
    assert not made.complete()
    made.confirm()
    assert made.complete()
    assert not replace(made, pins=[pins, alone]).complete()
    assert not replace(made, alone=[]).complete()
    for file in files:
        file.write_text("numpy==2\n")
        assert not made.complete()
        made.confirm()


def test_an_environment_whose_interpreter_is_gone_is_not_complete(tmp_path: Path) -> None:
    pins, interpreter = tmp_path / "pins.txt", tmp_path / "python"
    pins.touch()
    interpreter.symlink_to(sys.executable)
    made = Environment(tmp_path / "made", [pins])
    install_python(made, str(interpreter))
    made.confirm()
    assert made.complete()
    interpreter.unlink()
    assert not made.complete()
    made.python.unlink()
    assert not made.complete()


Commands = list[list[str]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets pip list these settings."""

    def tell(listed: str) -> None:
        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            assert command == [sys.executable, "-m", "pip", "config", "list"]
            return subprocess.CompletedProcess(command, 0, stdout=listed)

        monkeypatch.setattr(subprocess, "run", run)

    return tell


def asked_for(made: Environment) -> Commands:
    """What both tools are told to install: nothing that is not in a file, with its digest."""
    files = [f"--requirement={file}" for file in (*made.pins, *made.alone)]
    return [["--require-hashes", *files[:2]], ["--require-hashes", "--no-deps", *files[2:]]]


def made_by(folder: Path, fails: str = "") -> tuple[Environment, Commands]:
    """An environment, and what was run to make it: commands with the word `fails` do."""
    files = [folder / name for name in ("jax.txt", "notebooks.txt", "d2l.txt")]
    for file in files:
        file.touch()
    made = Environment(folder / "made", files[:2], alone=files[2:])
    ran: Commands = []

    def run(*command: str, env: Mapping[str, str] | None = None) -> None:
        ran.append([*command, *(f"{name}={value}" for name, value in (env or {}).items())])
        if fails in command:
            raise OSError("there is no such package")
        if "--clear" in command:
            shutil.rmtree(made.folder, ignore_errors=True)
            install_python(made, sys.executable)

    made.make(run)
    return made, ran


@pytest.mark.parametrize(
    ("places", "unwritten"), [([], False), (["UV_FIND_LINKS=/wheels"], False), ([], True)]
)
def test_uv_makes_it_where_it_can(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: Callable[[str], None],
    places: list[str],
    unwritten: bool,
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", unwritten)
    told("global.find-links='/wheels'" if places else "")
    monkeypatch.setattr("sessions.support.find_spec", lambda name: name == "uv" or None)
    env = [*places, "UV_INDEX_STRATEGY=unsafe-best-match"] if places else []
    made, ran = made_by(tmp_path)
    uv = [sys.executable, "-m", "uv", "--quiet"]
    compiled = ["--compile-bytecode"] if unwritten else []
    install = [*uv, "pip", "install", "--python", str(made.python), *compiled]
    assert ran == [
        [*uv, "venv", "--clear", "--python", sys.executable, str(made.folder), *env],
        *([*install, *files, *env] for files in asked_for(made)),
    ]
    assert made.complete()


@pytest.mark.parametrize("tried", [0, 1, 2])
def test_and_else_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Callable[[str], None], tried: int
) -> None:
    told("")
    monkeypatch.setattr("sessions.support.find_spec", lambda name: tried > 0 or None)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made, ran = made_by(tmp_path, fails="--compile-bytecode" if tried == 2 else "uv")
    assert len(ran) == tried + 3
    assert all(command[1:3] == ["-m", "uv"] for command in ran[:tried])
    pip = [str(made.python), "-m", "pip", "install", "--quiet"]
    assert ran[tried:] == [
        [sys.executable, "-m", "venv", "--clear", str(made.folder)],
        *([*pip, *files] for files in asked_for(made)),
    ]
    assert made.complete()


def test_pip_makes_it_where_no_index_may_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Callable[[str], None]
) -> None:
    told(":env:.no-index='1'\nglobal.find-links='/wheels'")
    monkeypatch.setattr("sessions.support.find_spec", lambda name: True)
    _, ran = made_by(tmp_path)
    assert not any("uv" in command for command in ran)


def test_what_pip_cannot_make_is_not_complete(tmp_path: Path) -> None:
    def run(*_: str, env: Mapping[str, str] | None = None) -> None:
        raise OSError("no place")

    with pytest.raises(OSError, match="no place"):
        Environment(tmp_path / "made", [tmp_path / "pins.txt"]).make(run)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("listed", "places"),
    [
        ("", {}),
        ("global.timeout='60'", {}),
        (
            ":env:.extra-index-url='https://one.example https://two.example'\n"
            "global.extra-index-url='https://three.example'\n"
            "global.find-links='/wheels\\n/more'",
            {
                "UV_INDEX": "https://one.example https://two.example",
                "UV_FIND_LINKS": "/wheels,/more",
            },
        ),
        (
            "global.index-url='https://one.example'\ninstall.index-url='https://two.example'\n"
            "wheel.index-url='https://three.example'",
            {"UV_DEFAULT_INDEX": "https://two.example"},
        ),
    ],
)
def test_uv_looks_where_pip_does(
    told: Callable[[str], None], listed: str, places: dict[str, str]
) -> None:
    told(listed)
    best = {"UV_INDEX_STRATEGY": "unsafe-best-match"} if places else {}
    assert sources_of_pip() == places | best


@pytest.mark.parametrize(
    ("offered", "chosen"), [("2.1, 2.0+cpu, 2.0", "cpu"), ("2.1+cpu, 2.0", "other"), ("", "other")]
)
def test_a_build_is_taken_where_it_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: str, chosen: str
) -> None:
    listed = f"torch (2.1)\nAvailable versions: {offered}\n"
    done = subprocess.CompletedProcess([], 0, stdout=listed)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr("sessions.support.find_spec", lambda name: None)
    cpu, other = tmp_path / "cpu.txt", tmp_path / "other.txt"
    cpu.write_text("torch==2.0+cpu \\\n    --hash=sha256:0\n")
    other.write_text("torch==2.0 \\\n    --hash=sha256:1\n")
    [(_, install)] = Environment(tmp_path / "made", [], [cpu, other]).ways()
    assert install[-1] == f"--requirement={tmp_path / chosen}.txt"
