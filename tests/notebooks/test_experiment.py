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
from common.compare.folder import examine
from common.compare.suite import SuiteResult
from common.records.store import read_record, read_tensors
from notebooks.classroom.experiment import (
    Command,
    Runs,
    interpreters,
    read_runs,
    run,
    run_all,
    short_runs,
)
from notebooks.classroom.tables import (
    accused,
    differences,
    farthest,
    multiple,
    pair_distances,
    print_table,
    verdicts,
)

HERE = Path(sys.executable)
LOOKS_BUSY = """
import sys, time, pathlib
begun = time.time(); time.sleep(0.4)
pathlib.Path(sys.argv[1]).write_text(f"{begun} {time.time()}")
"""


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


@pytest.mark.parametrize("there", [[], ["jax"]])
def test_fewer_than_two_frameworks_are_refused_in_a_line(tmp_path: Path, there: list[str]) -> None:
    for name in there:
        environment(tmp_path, name)
    with pytest.raises(RequestError, match=" ".join(there) or "no framework") as refused:
        interpreters(tmp_path)
    assert "\n" not in str(refused.value)


def test_runs_go_on_two_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / str(number) for number in range(4)]
    run_all([Command("jax", HERE, ["-c", LOOKS_BUSY, str(file)]) for file in files])
    times = [tuple(map(float, file.read_text().split())) for file in files]
    assert max(sum(a <= begun < b for a, b in times) for begun, _ in times) == 2
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_run_that_fails_says_its_last_line_and_whose_it_is() -> None:
    fails = "import sys; print('much', file=sys.stderr); sys.exit('no such device')"
    with pytest.raises(RunError, match=r"^jax ended with status 1: no such device$"):
        run(Command("jax", HERE, ["-c", fails]))
    with pytest.raises(RunError, match="mxnet"):
        run(Command("mxnet", Path("/no/python"), []))


def test_a_run_that_fails_ends_those_that_have_not_begun(tmp_path: Path) -> None:
    begun = [str(tmp_path / str(number)) for number in range(9)]
    todo = [["-c", "import sys; sys.exit(1)"], *(["-c", LOOKS_BUSY, each] for each in begun)]
    with pytest.raises(RunError):
        run_all([Command("jax", HERE, each) for each in todo])
    assert len(list(tmp_path.iterdir())) <= 2


def runs_in(folder: Path) -> Runs:
    return read_runs(folder / "float64", "scratch", FRAMEWORKS)


def spoil(folder: Path, framework: str, change: Callable[[Any], Any], name: str) -> None:
    """Writes a run anew with one tensor changed, and vouches for it."""
    path = folder / "float64" / f"{framework}-scratch-1dev.json"
    tensors = read_tensors(path, read_record(path))
    agreement.rewrite(path, {name: change(tensors[name])})


def suite(folder: Path) -> SuiteResult:
    (found,) = examine(folder, chapters=["scratch"])
    return found


def test_distances_are_of_every_pair_and_every_tensor(results: Path) -> None:
    assert set(farthest(runs_in(results), "gradients/").values()) == {0.0}
    spoil(results, "mxnet", lambda values: 1.5 * values, "gradients/fc1.bias")
    found = pair_distances(runs_in(results), "gradients/")
    assert len(found) == 8
    assert all(len(pairs) == 6 for pairs in found.values())
    off = {pair for pairs in found.values() for pair, far in pairs.items() if far}
    assert off == {f"{name}\nmxnet" for name in FRAMEWORKS if name != "mxnet"}
    assert found["gradients/fc1.bias"]["jax\nmxnet"] == pytest.approx(1 / 3)


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


def test_verdicts_show_every_framework_and_name_the_wrong_one(results: Path) -> None:
    with pytest.raises(RunError, match="nobody"):
        accused(suite(results))
    spoil(results, "tensorflow", lambda values: 2 * values, "gradients/fc1.weight")
    found = suite(results)
    assert accused(found) == "tensorflow"
    rows = {name: cells for name, *cells in verdicts(found)}
    failed = [["✗" in cell for cell in cells] for cells in rows.values()]
    columns = zip(FRAMEWORKS, zip(*failed, strict=True), strict=True)
    assert len(rows) > 5
    assert [name for name, column in columns if any(column)] == ["tensorflow"]


def test_tables_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["tensor", "float64\nfar"], [["fc1", 1.234e-15], ["fc2", 0.5], ["n", 7]])
    said = capsys.readouterr().out
    assert "1.2e-15" in said
    assert "0.5" in said
    assert "\x1b" not in said


def test_short_runs_ask_every_framework_for_the_same(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Command] = []
    monkeypatch.setattr(
        "notebooks.classroom.experiment.interpreters", lambda: dict.fromkeys(FRAMEWORKS, HERE)
    )
    monkeypatch.setattr("notebooks.classroom.experiment.run_all", seen.extend)
    found = short_runs(results, "scratch", "float64", "--steps=3")
    assert list(found) == list(FRAMEWORKS)
    assert {tuple(each.arguments[2:]) for each in seen} == {tuple(seen[0].arguments[2:])}
    assert {each.arguments[1] for each in seen} == {f"frameworks.{x}.scratch" for x in FRAMEWORKS}
    assert seen[0].arguments[-1] == "--steps=3"
