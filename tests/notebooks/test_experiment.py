"""What the chapter on parity runs and says: commands, distances, and who is accused."""

import sys
from pathlib import Path

import agreement
import numpy as np
import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.records.store import read_record, read_tensors
from notebooks.classroom.experiment import Command, interpreters, read_runs, run
from notebooks.classroom.tables import differences, multiple


def test_the_environments_of_frameworks_are_found_by_either_name(tmp_path: Path) -> None:
    places = {}
    for name in ("notebooks-jax", "lint", "pytorch"):
        if name == "pytorch":
            with pytest.raises(RequestError, match="it takes two frameworks, and jax has"):
                interpreters(tmp_path)
        places[name] = tmp_path / ".nox" / name / "bin" / "python"
        places[name].parent.mkdir(parents=True)
        places[name].symlink_to(sys.executable)
    expected = {"pytorch": places["pytorch"], "jax": places["notebooks-jax"]}
    assert interpreters(tmp_path) == expected


def test_a_run_that_fails_says_its_last_line_and_whose_it_is() -> None:
    fails = "import sys; print('much', file=sys.stderr); sys.exit('no such device')"
    with pytest.raises(RunError, match=r"^jax ended with status 1: no such device$"):
        run(Command("jax", Path(sys.executable), ["-c", fails]))


def test_differences_tell_a_factor_in_the_order_of_computing(results: Path) -> None:
    path = results / "float64" / "jax-scratch-1dev.json"
    tensors = read_tensors(path, read_record(path))
    changes = {"gradients/fc2.bias": 10, "logits/before": -1}
    agreement.rewrite(path, {name: factor * tensors[name] for name, factor in changes.items()})
    runs = read_runs(results / "float64", "scratch", FRAMEWORKS)
    logits, gradient = differences(runs["jax"], runs["pytorch"])
    assert [logits.array, gradient.array] == ["logits/before", "gradients/fc2.bias"]
    assert logits[1:] == pytest.approx([2, -1, 0])
    assert gradient[1:] == pytest.approx([9, 10, 0])
    assert differences(runs["pytorch"], runs["tensorflow"]) == []


def test_what_no_factor_explains_is_left() -> None:
    right, other = np.random.RandomState(0).standard_normal((2, 1000))
    assert multiple(3 * right, right) == pytest.approx((3, 0))
    factor, left = multiple(other, right)
    assert abs(factor) < 0.2
    assert left > 0.5
    assert multiple(other, 0 * right)[0] == 0
