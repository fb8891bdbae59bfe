"""`python -m common.judge` and `check`, on their own and in each framework."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import getsource
from itertools import product
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest
from started import python

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array, Weights
from common.chapters.scratch import ScratchOptions
from common.judge import check
from common.judge.judgement import TEXTS, in_framework, judge

SAID = {
    "": (2, "has no allreduce: name another one as"),
    "def allreduce(data:": (2, "SyntaxError: '(' was never closed"),
    "def allreduce(data, k): pass": (2, "TypeError: allreduce() missing 1 required"),
    "def allreduce(data):\n    return data[9]": (2, "IndexError: list index out of range (line 2)"),
    "def allreduce(data):\n    while True: pass": (2, "size 1, float64: no answer after 5 seconds"),
    "def allreduce(data):\n    yield data": (2, "of type generator, where a list is due"),
    "import os\ndef allreduce(data):\n    os._exit(0)": (2, "float64: the code ended its process"),
    "import sys\nassert len(sys.argv) == 1\ndef allreduce(data):\n    return data": (
        1,
        "wrong: at 2",
    ),
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('n')\np.parse_args()": (
        2,
        "SystemExit: mine.py: error: the following arguments are required: n (line 4)",
    ),
    "def allreduce(data):\n    print(data)\n    return data": (1, "wrong: at 2 devices, size 1"),
    TEXTS["allreduce"]["protocol"].partition("\n\n")[2]: (0, "right: every device gets the sum"),
}


@pytest.mark.parametrize(("code", "status", "text"), [(k, *v) for k, v in SAID.items()])
def test_a_command_says_it_in_a_line_or_three(
    code: str, status: int, text: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(dedent(code))
    done = python("-m", "common.judge", "allreduce", tmp_path / "mine.py", "--timeout", "5")
    line = done.stderr if status == 2 else done.stdout
    assert (done.returncode, done.stdout + done.stderr) == (status, line)
    assert text in line
    assert line.count("\n") == (1 if status == 2 else 3)
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.py"]


def test_the_examples_of_help_are_right() -> None:
    for kind in ("allreduce", "schedule", "pipeline", "layer"):  # the others need PyTorch
        names: dict[str, Any] = {}
        exec(dedent(TEXTS[kind]["protocol"].partition("\n\n")[2]), names)
        assert judge(kind, names[kind]).right
    shown = python("-m", "common.judge", "step", "--help").stdout
    assert TEXTS["step"]["protocol"] in shown


def allreduce_by_star(arrays: list[Any]) -> list[Any]:
    return [sum(arrays) for _ in arrays]


def pipelined_schedule(k: int) -> list[Any]:
    rounds = range(2 * (k - 1))
    return [[(i, (i + 1) % k, (i - r) % k, r < k - 1) for i in range(k)] for r in rounds]


class MyStep:
    def start(self, weights: Any) -> None:
        raise ZeroDivisionError


KINDS = {
    allreduce_by_star: "right: every device gets the sum, with the same bits",
    pipelined_schedule: "right: every device gets the sum, over 1 to 8 devices; with 8, rounds: 14",
    MyStep: "not judged: at the start: ",
    print: f"not judged: say which kind it is: kind= is one of {', '.join(TEXTS)}",
}


@pytest.mark.parametrize("candidate", KINDS)
def test_a_name_decides_the_kind(candidate: Any, capsys: pytest.CaptureFixture[str]) -> None:
    judgement = check(candidate)
    assert judgement.text.startswith(KINDS[candidate])
    assert capsys.readouterr().out == f"{judgement.text}\n"
    assert bool(judgement) == judgement.text.startswith("right: ")


def test_a_loop_without_end_ends_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    def allreduce(data: list[Any]) -> list[Any]:
        while True:
            data[0] = data[0]

    judgement = check(allreduce, timeout=0.5)
    assert (bool(judgement), judgement.right) == (False, None)
    assert "size 1, float64: TimeoutError: no answer after 0.5 seconds" in judgement.text
    assert check(allreduce_by_star, timeout=10)
    assert not check(lambda data: data, "allreduce").right


WRAPPED = {
    "pytorch": ("torch", "torch.nn.DataParallel(torch.nn.Linear(1, 1))"),
    "tensorflow": ("tensorflow as tf", "tf.distribute.MirroredStrategy()"),
    "jax": ("jax", 'jax.make_mesh((1,), ("data",))'),
}
"""What a file imports, and a wrapper that has one device on a machine without a GPU."""

STEP = """
import {}
from common.compare import numpy_nets
def start(weights):
    global w, wrapper
    w, wrapper = weights, {}
def weights():
    return w
def step(X, y, lr):
    global w
    exact = numpy_nets.step("scratch", X, y, w, [(0, len(y))])
    w = {{name: w[name] - lr * grad for name, grad in exact.gradients.items()}}
    return exact.loss
"""


@pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=pytest.mark.only(name)) for name in WRAPPED]
)
def test_a_wrapper_that_has_one_device_is_named(framework: str, tmp_path: Path) -> None:
    module, wrapper = WRAPPED[framework]
    name = wrapper.partition("(")[0].rpartition(".")[2].replace("make_mesh", "Mesh")
    for made, text in ((wrapper, f"right, but {name} has 1 device here: "), ("0", "right: losses")):
        (tmp_path / "mine.py").write_text(STEP.format(module, made))
        done = python("-m", "common.judge", "step", tmp_path / "mine.py")
        assert done.stdout.startswith(text), done


@pytest.mark.only("pytorch")
def test_the_script_of_a_page_is_wrong_and_then_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/porting.md").read_text()
    script, wrong, mend, right = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[
        :4
    ]
    mended = script.replace(mend.splitlines(keepends=True)[0], mend)
    for code, text in ((script, wrong), (mended, right)):
        (tmp_path / "mine.py").write_text(code)
        assert python("-m", "common.judge", "step", tmp_path / "mine.py").stdout.startswith(text)


SLIPS = """
tensorflow | model | (dense(X, | (dense(tf.reshape(X, (-1, 800)), | flattened with channels last
tensorflow | step | (lr * | (2 * lr * | the gradient is the right one × 2
tensorflow | allreduce | = data[0] | = 2 * data[0] | device 0 has 2 times the sum
pytorch | model | avg_pool2d(r | F.max_pool2d(kernel_size=2, input=r | with the largest entries
pytorch | step | grads[name] | (grads[name] + 0.5 * param) | has 0.5 times the weight added
pytorch | allreduce | , copy=True | | devices 0 and 1 share the memory of one array
pytorch | allreduce | .clone() | | of the caller's arrays, only those of devices 0 are
jax | model | relu( | jax.nn.sigmoid( | lenet with sigmoids in place of ReLUs
jax | step | .sum() / examples | .sum() | that of the sum over 12 examples, not of
jax | allreduce | in data[1:]: | in data: | size 1, float64: device 0 has 2 times the s
mxnet | model | relu(dense( | (dense( | lenet but for
mxnet | step | .sum() / examples | .sum() / 12 | the gradient is the right one × 0.916667
mxnet | allreduce | return [total | data[:] = [total | device 1 has the values of 1 only
"""
"""A framework, a kind, a place of its listing, what a user writes there, and the verdict."""

CASES = [[word.strip() for word in line.split("|")] for line in SLIPS.strip().splitlines()]
CASES += [[*pair, "", "", "right: "] for pair in product(FRAMEWORKS, ("model", "step"))]


@dataclass
class Port:
    """A listing on some devices, as the kinds `model` and `step` call it."""

    chapter: Any
    devices: Sequence[Any]

    def start(self, weights: Weights) -> None:
        self.trainer = self.chapter.trainer(weights, self.devices, ScratchOptions())

    def step(self, X: Array, y: Array, lr: float) -> Any:
        return self.trainer.train_batch(X, y, lr)

    def weights(self) -> Any:
        return self.trainer.export()

    def model(self, weights: Weights, X: Array) -> Any:
        self.start(weights)
        return self.trainer.predict(X)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.only(name)) for name, *case in CASES]
)
def test_a_verdict_in_a_framework(
    framework: str,
    scratch: Any,
    all_devices: Sequence[Any],
    case: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, old, new, text = case
    monkeypatch.setattr("common.judge.steps.wrappers", dict)  # those of other tests are here
    source = getsource(scratch.listing)
    assert old in source
    names: dict[str, Any] = {"__name__": "changed"}
    exec(source.replace(old, new), names)
    port = Port(replace(scratch, listing=SimpleNamespace(**names)), all_devices[:2])
    candidate = {"model": port.model, "step": port, "allreduce": names["allreduce"]}[kind]
    setting = in_framework(framework if kind == "allreduce" else None, all_devices)
    assert text in judge(kind, candidate, setting).text.splitlines()[0]
