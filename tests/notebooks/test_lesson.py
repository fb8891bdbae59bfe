"""What a notebook asks of the project, in a program as it is when it has been made a script."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import save_weights
from notebooks.classroom.lesson import Lesson, flag

ROOT = Path(__file__).parents[2]

SETTINGS = {
    "devices": 2,
    "batch_size": 21,
    "steps": 3,
    "dataset": "synthetic",
    "train_examples": 42,  # JAX would compile another program for a shorter last minibatch
    "test_examples": 20,
}


def script(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program that lies anywhere, from the root."""
    program = folder / "lesson_script.py"
    program.write_text(
        "import json, sys\nsys.path.insert(0, '.')\n"
        "from notebooks.classroom.lesson import Lesson\n" + dedent(text)
    )
    command = [sys.executable, str(program)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def losses(framework: str, chapter: str, folder: Path) -> list[float]:
    """The losses of the command line, with the same flags."""
    flags = [flag(name, value) for name, value in {**SETTINGS, "out": folder}.items()]
    module = f"frameworks.{framework}.{chapter}"
    command = [sys.executable, "-m", module, "--preset=quick", "--quiet", *flags]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    record = json.loads((folder / f"{framework}-{chapter}-2dev.json").read_text())
    found: list[float] = record["losses"]
    return found


@pytest.mark.parametrize("chapter", ["scratch", "concise"])
def test_a_cell_trains_as_the_command_line_does(
    framework: str, chapter: str, tmp_path: Path
) -> None:
    ran = script(
        tmp_path,
        f"""
        lesson = Lesson("{framework}", "{chapter}", device_kind="cpu")
        outcome = lesson.train(**{SETTINGS!r})
        print("losses", json.dumps(outcome.losses))
        """,
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "virtual devices share the CPU" in ran.stdout
    assert sum(line.startswith("test acc: ") for line in lines) == 1
    assert ran.stdout.count("virtual devices") == 1  # no process runs the script again
    found = json.loads(next(line for line in lines if line.startswith("losses"))[7:])
    assert found == losses(framework, chapter, tmp_path)


def test_the_functions_of_the_notebook_are_those_that_train(framework: str, tmp_path: Path) -> None:
    ran = script(
        tmp_path,
        f"""
        lesson = Lesson("{framework}", "scratch", device_kind="cpu")
        book, calls = lesson.chapter.listing, []

        def train_batch(*arguments):
            calls.append(arguments)
            return book.train_batch(*arguments)

        lesson.train(**{SETTINGS!r}, quiet=True)
        print("calls", len(calls))
        wrong = [("devices", 3), ("nonsense", 1), ("out", "x"), ("help", True), ("devices", 0)]
        for setting in wrong:
            try:
                lesson.train(**dict([setting]))
            except Exception as error:
                print("refused", type(error).__name__, str(error)[:90])
        """,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "calls 3" in ran.stdout.splitlines()
    devices, nonsense, out, helped, none = (
        line for line in ran.stdout.splitlines() if line.startswith("refused RequestError ")
    )
    assert devices.endswith("this notebook has 2 devices, not 3")
    assert "unrecognized arguments" in nonsense
    assert out.endswith("only the command line can set out")
    assert "usage" in helped
    assert "--devices" in none


def test_weights_that_are_given_are_those_it_starts_from(framework: str, tmp_path: Path) -> None:
    given = initial_weights(LENET, 5, "float32")
    save_weights(tmp_path / "given.safetensors", given)
    ran = script(
        tmp_path,
        f"""
        lesson = Lesson("{framework}", "scratch", device_kind="cpu")
        outcome = lesson.train(**{SETTINGS!r}, init_weights="{tmp_path}/given.safetensors")
        print("kept", float(abs(outcome.tensors["trace/weights/0/fc2.weight"]).max()))
        """,
    )
    assert ran.returncode == 0, ran.stderr
    kept = next(line for line in ran.stdout.splitlines() if line.startswith("kept"))
    assert float(kept[5:]) == float(abs(given["fc2.weight"]).max())


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "notebooks.classroom.lesson.versions", lambda names: dict.fromkeys(names, "none")
    )
    with pytest.raises(RequestError, match="mxnet is not installed here: `nox -s lab -- mxnet`"):
        Lesson("mxnet", "scratch")
