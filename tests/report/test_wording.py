"""The sentences of verdicts are those of `wording.txt`.

`WORDING=write pytest tests/report/test_wording.py` rewrites it.
"""

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.backends.frameworks import FRAMEWORKS
from common.compare.findings import HEADINGS, Check, Comparison, Verdict
from common.pairs.arrays import PairVerdict, compare_arrays
from common.report.text import print_pair, print_verdict
from common.settings.arguments import all_settings
from common.settings.config import Config

GOLDEN = Path(__file__).with_name("wording.txt")
RING = {"mxnet": "it has no ring"}


def check(name: str = "gradient", framework: str = "jax", devices: int = 2, **found: Any) -> Check:
    """A check that has passed, of a suite."""
    about = {"framework": framework, "devices": devices, "suite": "float64", "chapter": "scratch"}
    measured = {"quantity": name, "distance": 1.5e-15, "tolerance": 1e-10, "passed": True}
    return Check(check=name, **{**about, **measured, **found})


EXACT: dict[str, Any] = {"distance": None, "tolerance": None}
"""Of a check that compares no numbers."""


def comparison(*checks: Check, suite: str = "float64", **more: Any) -> Comparison:
    settings = all_settings("jax", "scratch", {"steps": 10, "lr_decay": "linear"})
    config = Config.of(settings, 2, more.pop("kind", "cpu")).on_data("synthetic", 951, 1101)
    against = "NumPy's step from each run's own weights"
    about: Any = {"suite": suite, "chapter": "scratch", "config": config, "compared_with": against}
    return Comparison(**about, checks=list(checks), **more)


def verdict(*comparisons: Comparison, brief: bool = False, **more: Any) -> None:
    checks = [check for each in comparisons for check in each.checks]
    passed = all(check.passed for check in checks)
    found = Verdict(passed=passed, created="", comparisons=list(comparisons), **more)
    print_verdict(found, brief=brief)


def every(names: Any = FRAMEWORKS, **found: Any) -> list[Check]:
    return [check(framework=name, **found) for name in names]


def everything_right() -> None:
    marks = [check("record", framework=name, **EXACT) for name in FRAMEWORKS]
    floor = every(name="accuracy", distance=0.81, tolerance=0.7)
    verdict(comparison(*marks, *every(), *floor, notes=["A=1 in jax on 2"]))


def briefly_with_suites_that_some_lack() -> None:
    ring = comparison(*every(FRAMEWORKS[:3]), suite="float64-ring", lacking=RING)
    left = ["scratch float64-tree", "concise float64"]
    verdict(comparison(*every()), ring, brief=True, not_run=left, ignored=["a-4dev.json"])


def only_a_suite_that_some_lack() -> None:
    verdict(comparison(check(), suite="float64-ring", lacking=RING))


def one_framework() -> None:
    verdict(comparison(check(), check("steps")), brief=True)
    verdict(comparison(check("devices")), brief=True)


def gpus_and_hidden_steps() -> None:
    lost = check("steps", steps=10, hidden=4)
    verdict(comparison(lost, *every()), comparison(*every(FRAMEWORKS[:3]), kind="gpu"))


def every_failed_check() -> None:
    """Whatever its order, a wrong step comes before what rests on other runs."""
    noted = {"record": "there is no file", "shapes": "weights/fc3.bias is missing"}
    noted["peers"] = "no other run is of this setting"
    checks = [
        check(name, passed=False, note=noted[name], **EXACT) if name in noted else wrong(name)
        for name in HEADINGS
    ]
    nan = check(passed=False, distance=None, where="gradients/fc2.bias", framework="mxnet")
    verdict(comparison(*checks, nan))


def wrong(name: str) -> Check:
    step = 3 if name == "steps" else None
    where, diverged = f"{name}/a[1, 2]", [f"layers/before/{name}/conv1"]
    return check(name, passed=False, distance=0.5, where=where, step=step, diverged=diverged)


def two_runs() -> None:
    right = [check("forward", where="logits/before[0, 1]"), check("weights", tolerance=None)]
    notes = ["the first: jax scratch on cpu:0, float64"]
    print_pair(PairVerdict(right, notes), "a.json against b.json")
    far = check("trajectory", passed=False, distance=0.5, where="step 4", note="first at step 2")
    print_pair(PairVerdict([*right, far], notes), "a.json against b.json")
    print_pair(PairVerdict([], notes, ["lr is 0.1 and 0.2"]), "a.json against b.json")


def two_files() -> None:
    random = np.random.RandomState(0)
    drawn = {name: random.standard_normal((4, 3)) for name in "abcd"}
    drawn |= {"bias": np.ones(3)}

    def pair(ours: Any, expected: Any = drawn) -> None:
        print_pair(compare_arrays(ours, expected), "a.safetensors against b.safetensors")

    pair(drawn)
    pair({name: values.astype("float32") for name, values in drawn.items()})
    pair(drawn | {"a": drawn["a"].T, "b": drawn["c"], "c": drawn["b"]})
    pair({"x" + name: values for name, values in drawn.items()})
    pair(drawn | {"d": drawn["d"] + 1, "bias": np.full(3, np.nan), "e": drawn["a"]})


SCENES: list[Callable[[], None]] = [
    *(everything_right, briefly_with_suites_that_some_lack, only_a_suite_that_some_lack),
    *(one_framework, gpus_and_hidden_steps, every_failed_check, two_runs, two_files),
]


def test_every_sentence_is_that_of_the_golden_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    said = []
    for scene in SCENES:
        scene()
        said += [f"## {scene.__name__.replace('_', ' ')}", *capsys.readouterr().out.splitlines()]
    lines = [line.rstrip() for line in said]
    if os.environ.get("WORDING") == "write":
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert kept == lines, "\n".join(difflib.unified_diff(kept, lines, "kept", "said", lineterm=""))
