"""A copy of the code is changed; what nothing notices is printed."""

import shutil
import time
from pathlib import Path
from subprocess import Popen

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.records.fingerprint import ROOT
from mutants import __main__ as program
from mutants.changes import mutants

SOURCE = """\
def part(values: list[int], last=True) -> int:
    if last and len(values) > 1: pass
    return sum(values[1:], start=-x)
    values.sort()
"""
CHANGES = [
    *("1 True => False", "2 len(values) => (lambda x: x)(values)"),
    *("2 last and len(values) > 1 => last or len(values) > 1", "2 1 => 2", "3 1 => 2"),
    *("2 len(values) > 1 => len(values) >= 1", "3 1: => :", "3 -x => +x"),
    "2 if last and len(values) > 1: => if not (last and len(values) > 1):",
    *("3 sum(values[1:], start=-x) => sum(values[1:])", "4 values.sort() => None"),
    "4 values.sort() => (lambda: values)()",
]
RUNS = """\
import sys
from pathlib import Path
from frameworks.jax.scratch import half
Path(sys.argv[2], "suite.lines").write_text("frameworks/jax/scratch.py:2")
sys.exit([half(x) for x in (4, 1, -1)] != [2, 0.5, 0])
"""
CODE = "def half(x):\n    return x / 2 if x > 0 else 0\n\n\nunknown = 3\n"
ROOMS = ("training", "parallel", "chapters", "backends")
COPY = {
    **{"frameworks/jax/scratch.py": CODE, "mutants/runs.py": RUNS},
    # Else the project, which an environment has on its path, would come first.
    **{f"{name}/__init__.py": "" for name in ("frameworks", "frameworks/jax", "mutants")},
    **{f"tests/{room}/test_{room}.py": "def test(): pass" for room in ROOMS},
    "conftest.py": 'def pytest_addoption(parser): parser.addoption("--framework")',
}


def test_operators_constants_conditions_slices_and_arguments_are_changed() -> None:
    found = [f"{x.line} {x.words.partition('  [')[2][:-1]}" for x in mutants("part.py", SOURCE)]
    assert sorted(found) == sorted(CHANGES)


def test_what_nothing_notices_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in COPY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "LEAST", 5.1 / 6)
    assert program.main(["--framework=jax"]) == 1
    equivalent = "frameworks/jax/scratch.py:2: return x / 2 if x > 0 else 0  [x > 0 => x >= 0]"
    assert capsys.readouterr().out.splitlines()[-2:] == ["jax: 5 of 6 killed", equivalent]
    assert {name: (tmp_path / name).read_text() for name in COPY} == COPY


def test_an_interrupted_command_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import time\nopen('begun', 'w')\ntime.sleep(1)\nopen('ended', 'w')\n"
    (tmp_path / "slow.py").write_text(code)

    def interrupted(process: Popen[str], *_: object, **__: object) -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.red(tmp_path, "slow")
    time.sleep(1.5)
    assert not (tmp_path / "ended").exists()


@pytest.mark.only(*FRAMEWORKS)
def test_a_run_without_an_all_reduce_is_red(framework: str, tmp_path: Path) -> None:
    tree, path = tmp_path / "tree", f"frameworks/{framework}/scratch.py"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "results", "__pycache__"))
    runs, suite = ["mutants.runs", framework, str(tmp_path)], "scratch float64"
    assert program.red(tree, *runs, "", suite) == program.red(tree, *runs, path, suite) == ""
    left_out = "[allreduce([grad[name] for grad in grads]) =>"
    mutant = next(x for x in mutants(path, (tree / path).read_text()) if left_out in x.words)
    assert f"{path}:{mutant.line}\n" in (tmp_path / f"{suite}.lines").read_text()
    (tree / path).write_text(mutant.source)
    assert "conv1.weight on device 1 differs" in program.red(tree, *runs, path, suite)
