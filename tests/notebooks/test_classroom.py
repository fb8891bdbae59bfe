"""What cells call."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import agreement
import numpy as np
import pytest
from started import python

from common.base.errors import RequestError, RunError
from common.chapters.strategies import StrategiesOptions
from common.models.nets import LENET
from common.models.weights_file import initial_weights, save_weights
from common.pairs.runs import read_run
from common.parallel.ledger import Event
from common.records.record import read_record, read_tensors
from common.settings.arguments import as_flags
from notebooks.classroom.experiment import interpreters, run
from notebooks.classroom.lesson import Lesson
from notebooks.classroom.splits import Steps, passes, side_by_side
from notebooks.classroom.tables import best_factor, differences


def test_the_environments_of_frameworks_are_found_by_either_name(tmp_path: Path) -> None:
    names = {"jax": "notebooks-jax", "pytorch": "pytorch"}
    places = {key: tmp_path / ".nox" / name / "bin/python" for key, name in names.items()}
    for place in places.values():
        with pytest.raises(RequestError, match="it takes two frameworks"):
            interpreters(tmp_path)
        place.parent.mkdir(parents=True)
        place.symlink_to(sys.executable)
    assert interpreters(tmp_path) == places


def test_a_run_that_fails_says_its_last_line_and_whose_it_is() -> None:
    fails = "import sys; print('much', file=sys.stderr); sys.exit('no such device')"
    with pytest.raises(RunError, match=r"^jax ended with status 1: no such device$"):
        run("jax", [sys.executable, "-c", fails])


def test_differences_tell_a_factor_in_the_order_of_computing(results: Path) -> None:
    path = results / "float64" / "jax-scratch-1dev.json"
    tensors = read_tensors(path, read_record(path))
    changes = {"gradients/fc2.bias": 10, "logits/before": -1}
    agreement.rewrite(path, {name: factor * tensors[name] for name, factor in changes.items()})
    jax, pytorch, tensorflow = (
        read_run(path.with_name(f"{name}-scratch-1dev.json"))
        for name in ("jax", "pytorch", "tensorflow")
    )
    logits, gradient = differences(jax, pytorch)
    assert [logits.array, gradient.array] == ["logits/before", "gradients/fc2.bias"]
    assert logits[1:] == pytest.approx([2, -1, 0])
    assert gradient[1:] == pytest.approx([9, 10, 0])
    assert differences(pytorch, tensorflow) == []


def test_the_residual_is_what_no_factor_explains() -> None:
    right, wrong = np.random.RandomState(0).standard_normal((2, 1000))
    assert best_factor(3 * right, right) == pytest.approx((3, 0))
    factor, residual = best_factor(wrong, right)
    assert abs(factor) < 0.2
    assert residual > 0.5
    assert best_factor(wrong, 0 * right)[0] == 0


def test_predicted_and_counted_are_side_by_side() -> None:
    options = StrategiesOptions("pipeline", microbatches=2)
    usage = options.usage(2, 10, 4)
    steps = Steps([2.0, 1.0], {"w": np.array([1.0, 2.0])}, usage, usage, [])
    messages = replace(steps.counted, messages=[2, 7])
    lines = side_by_side(replace(steps, counted=messages)).splitlines()
    cells = {line[:18].strip(): line[18:].replace("|", "").split() for line in lines}
    assert cells["bytes"] == ["predicted", "counted"]
    assert cells["messages"] == ["2", "2", "2", "7"]
    assert cells["sends activations"] == [f"{10 * 3380 * 4:,}", "0"] * 2
    assert cells["keeps weights"] == ["800", "515,472"] * 2
    assert "sends weights" not in cells  # nothing of it is sent
    assert len({line.index("|") for line in lines}) == 1
    assert steps.difference(replace(steps, weights={"w": np.array([1.5, 1.75])})) == 0.5


def test_passes_are_in_the_order_in_which_a_device_did_them() -> None:
    events = [Event(0, "forward", 0, 0, 1), Event(1, "forward", 0, 1, 2)]
    events += [Event(0, "forward", 1, 1, 2), Event(0, "backward", 0, 3, 4)]
    assert passes(events, 0) == "F0 F1 B0"


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
    ran = python(program, framework, chapter, json.dumps(settings))
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
    assert python("-m", f"frameworks.{framework}.{chapter}", *flags).returncode == 0
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    assert json.loads(ended) == [own_calls, record["losses"]]


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "notebooks.classroom.lesson.versions", lambda names: dict.fromkeys(names, "none")
    )
    with pytest.raises(RequestError, match="mxnet is not installed here: `nox -s lab -- mxnet`"):
        Lesson("mxnet", "scratch")
