"""What the chapter on parity runs and says: commands, distances, and who is accused."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agreement
import numpy as np
import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.records.store import read_record, read_tensors
from notebooks.classroom.experiment import Command, Runs, interpreters, read_runs, run
from notebooks.classroom.tables import (
    differences,
    multiple,
)

HERE = Path(sys.executable)


def environment(root: Path, name: str) -> Path:
    """An interpreter where an environment of that name would have it."""
    python = root / ".nox" / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


def test_the_environments_of_frameworks_are_found_by_either_name(tmp_path: Path) -> None:
    expected = {
        "pytorch": environment(tmp_path, "pytorch"),
        "jax": environment(tmp_path, "notebooks-jax"),
    }
    environment(tmp_path, "lint")
    assert interpreters(tmp_path) == expected


def test_a_framework_alone_is_refused(tmp_path: Path) -> None:
    environment(tmp_path, "jax")
    with pytest.raises(RequestError, match="it takes two frameworks, and jax has"):
        interpreters(tmp_path)


def test_a_run_that_fails_says_its_last_line_and_whose_it_is() -> None:
    fails = "import sys; print('much', file=sys.stderr); sys.exit('no such device')"
    with pytest.raises(RunError, match=r"^jax ended with status 1: no such device$"):
        run(Command("jax", HERE, ["-c", fails]))
    with pytest.raises(RunError, match="mxnet"):
        run(Command("mxnet", Path("/no/python"), []))


def runs_in(folder: Path) -> Runs:
    return read_runs(folder / "float64", "scratch", FRAMEWORKS)


def spoil(folder: Path, framework: str, change: Callable[[Any], Any], name: str) -> None:
    """Rewrites a run with one tensor changed, and vouches for it."""
    path = folder / "float64" / f"{framework}-scratch-1dev.json"
    tensors = read_tensors(path, read_record(path))
    agreement.rewrite(path, {name: change(tensors[name])})


def test_differences_tell_a_factor_in_the_order_of_computing(results: Path) -> None:
    spoil(results, "jax", lambda values: 10 * values, "gradients/fc2.bias")
    spoil(results, "jax", lambda values: -values, "logits/before")
    runs = runs_in(results)
    logits, gradient = differences(runs["jax"], runs["pytorch"])
    assert [logits.array, gradient.array] == ["logits/before", "gradients/fc2.bias"]
    assert logits[1:] == pytest.approx([2, -1, 0])
    assert gradient[1:] == pytest.approx([9, 10, 0])
    assert differences(runs["pytorch"], runs["tensorflow"]) == []


def test_what_no_factor_explains_is_left() -> None:
    random = np.random.RandomState(0)
    right, other = random.standard_normal((2, 1000))
    assert multiple(3 * right, right) == pytest.approx((3, 0))
    factor, left = multiple(other, right)
    assert abs(factor) < 0.2
    assert left > 0.5
    assert multiple(other, 0 * right)[0] == 0
