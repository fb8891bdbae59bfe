"""The interface of notebooks, called from a program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.base.errors import RequestError
from common.models.nets import LENET
from common.models.weights_file import initial_weights, save_weights
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


PROGRAM = """import json, sys
sys.path.insert(0, ".")
from notebooks.classroom.lesson import Lesson

def train_batch(*arguments):
    calls.append(arguments)
    return book.train_batch(*arguments)

if __name__ == "__main__":
    framework, chapter, settings = sys.argv[1:]
    lesson = Lesson(framework, chapter, device_kind="cpu")
    book, calls = getattr(lesson.imported, "listing", None), []
    outcome = lesson.train(**json.loads(settings))
    for setting in [("devices", 3), ("nonsense", 1), ("out", "x")]:
        try:
            lesson.train(**dict([setting]))
        except Exception as error:
            print("refused", type(error).__name__, str(error)[:90])
    print("ended", json.dumps([len(calls), outcome.losses]))
"""


@pytest.mark.parametrize(
    ("chapter", "own_calls"),
    [
        ("scratch", 3),
        pytest.param("concise", 0, marks=pytest.mark.only("pytorch")),
        pytest.param("strategies", 0, marks=pytest.mark.only("jax")),
    ],
)
def test_a_cell_trains_as_the_command_line_does_by_the_functions_of_the_notebook(
    framework: str, tmp_path: Path, chapter: str, own_calls: int
) -> None:
    settings: dict[str, object] = dict(SETTINGS)
    if chapter == "scratch":
        save_weights(tmp_path / "given.safetensors", initial_weights(LENET, 5, "float32"))
        settings["init_weights"] = str(tmp_path / "given.safetensors")
    if chapter == "strategies":
        settings |= {"native": True, "devices": 1}  # of two
    program = tmp_path / "lesson_script.py"  # in any folder, run from the root
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), framework, chapter, json.dumps(settings)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    output, ended = ran.stdout.split("\nended ")
    assert output.count("\ntest acc: ") == 1
    refused = [line for line in output.splitlines() if line.startswith("refused RequestError ")]
    assert [line[21:] for line in refused[::2]] == [
        "this notebook has 2 devices, not 3",
        "only the command line can set out",
    ]
    assert "unrecognized arguments" in refused[1]
    flags = as_flags({**settings, "out": tmp_path, "preset": "quick", "quiet": True})
    command = [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *flags]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    assert json.loads(ended) == [own_calls, record["losses"]]


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "notebooks.classroom.lesson.versions", lambda names: dict.fromkeys(names, "none")
    )
    with pytest.raises(RequestError, match="mxnet is not installed here: `nox -s lab -- mxnet`"):
        Lesson("mxnet", "scratch")
