"""What a notebook asks of the project, in a program."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET
from common.models.weights_file import save_weights
from common.settings.arguments import as_flags
from notebooks.classroom.lesson import Lesson

ROOT = Path(__file__).parents[2]

SETTINGS = {
    "devices": 2,
    "batch_size": 21,
    "steps": 3,
    "dataset": "synthetic",
    "train_examples": 42,  # JAX would compile another program for a shorter last minibatch
    "test_examples": 20,
}


def script(folder: Path, text: str) -> str:
    """What a program prints that lies anywhere, run from the root."""
    program = folder / "lesson_script.py"
    program.write_text(
        "import json, sys\nsys.path.insert(0, '.')\n"
        "from notebooks.classroom.lesson import Lesson\n"
        "if __name__ == '__main__':\n" + indent(dedent(text), "    ")
    )
    command = [sys.executable, str(program)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def losses(framework: str, chapter: str, folder: Path, *given: str) -> list[float]:
    """The losses of the command line, with the same flags."""
    flags = [*given, *as_flags({**SETTINGS, "out": folder})]
    module = f"frameworks.{framework}.{chapter}"
    command = [sys.executable, "-m", module, "--preset=quick", "--quiet", *flags]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    record = json.loads((folder / f"{framework}-{chapter}-2dev.json").read_text())
    found: list[float] = record["losses"]
    return found


def test_a_cell_trains_as_the_command_line_does(framework: str, tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        f"""
        lesson = Lesson("{framework}", "concise", device_kind="cpu")
        outcome = lesson.train(**{SETTINGS!r})
        print("losses", json.dumps(outcome.losses))
        """,
    )
    assert printed.count("\ntest acc: ") == 1
    found = json.loads(printed.partition("\nlosses ")[2])
    assert found == losses(framework, "concise", tmp_path)


def test_the_functions_of_the_notebook_are_those_that_train(framework: str, tmp_path: Path) -> None:
    save_weights(tmp_path / "given.safetensors", initial_weights(LENET, 5, "float32"))
    start = f"{tmp_path}/given.safetensors"
    printed = script(
        tmp_path,
        f"""
        lesson = Lesson("{framework}", "scratch", device_kind="cpu")
        book, calls = lesson.chapter.listing, []

        def train_batch(*arguments):
            calls.append(arguments)
            return book.train_batch(*arguments)

        outcome = lesson.train(**{SETTINGS!r}, init_weights="{start}", quiet=True)
        print(json.dumps([len(calls), outcome.losses]))
        for setting in [("devices", 3), ("nonsense", 1), ("out", "x")]:
            try:
                lesson.train(**dict([setting]))
            except Exception as error:
                print("refused", type(error).__name__, str(error)[:90])
        """,
    )
    trained, devices, nonsense, out = (
        line for line in printed.splitlines() if line.startswith(("[", "refused RequestError "))
    )
    expected = losses(framework, "scratch", tmp_path, f"--init-weights={start}")
    assert json.loads(trained) == [3, expected]
    assert devices.endswith("this notebook has 2 devices, not 3")
    assert "unrecognized arguments" in nonsense
    assert out.endswith("only the command line can set out")


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "notebooks.classroom.lesson.versions", lambda names: dict.fromkeys(names, "none")
    )
    with pytest.raises(RequestError, match="mxnet is not installed here: `nox -s lab -- mxnet`"):
        Lesson("mxnet", "scratch")
