"""The proof of an environment: what is run of what was found, and that it claims no more."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from started import SECONDS, alive, children, heard

from common import prove
from common.base.errors import RequestError
from common.chapters.chapters import SUITES
from common.grid import commands
from common.prove import Found

ROOT = Path(__file__).parents[2]
RUNS = len(commands("jax", ROOT))
JAX = Found("jax", "/opt/jax/bin/python", "", "3.13.0", 8, {"jax": "1.0"}, {"jax": "1.0"})
TORCH = Found("pytorch", "python", "", "3.12.1", 0, {"torch": "3.0"})


def told(found: Found) -> str:
    """What a Python answers."""
    answer = {name: value for name, value in vars(found).items() if name != "python"}
    del answer["framework"]
    return json.dumps(answer)


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A program that says it is a Python with JAX, and whose runs take long."""
    path = tmp_path / "python"
    path.write_text(f"""#!/bin/sh
case $1 in
-c) echo '{told(replace(JAX, gpus=0))}' ;;
*) sleep $WAIT & echo 'python -m frameworks.jax.scratch --devices=1'; wait ;;
esac
""")
    path.chmod(0o755)
    return path


def started(stand_in: Path, seconds: int, *flags: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "common.prove", f"--python=jax={stand_in}", *flags]
    out = f"--out={stand_in.parent / 'proof'}"
    with heard():
        return subprocess.Popen(
            [*command, out],
            cwd=ROOT,
            env={"WAIT": str(seconds), "PATH": "/bin:/usr/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def test_gpus_are_used_where_they_are_seen(tmp_path: Path) -> None:
    assert prove.gpus_for([TORCH, JAX], None, ()) == prove.MOST
    found = [TORCH, replace(JAX, gpus=2)]
    steps = list(map(str, prove.grids(found, tmp_path, more_devices=False)))
    torch, jax = (f"python -m common.grid {each} --out={tmp_path}" for each in ("pytorch", "jax"))
    assert steps == [torch, jax, f"{jax} --gpus=2"]
    flags = "--suites --frameworks pytorch jax --gpus=2 --without-gpu pytorch"
    compared = prove.comparison(found, tmp_path, more_devices=False)
    assert compared == [str(tmp_path), *flags.split()]


@pytest.mark.parametrize(("gpus", "more"), [(0, False), (1, False), (2, True), (4, True)])
def test_what_is_compared_is_run(tmp_path: Path, gpus: int, more: bool) -> None:
    steps = prove.grids([replace(JAX, framework="mxnet", gpus=gpus)], tmp_path, more)
    suites = [suite for suite in SUITES if "mxnet" not in suite.lacking]
    counts = [len(suite.counts(more_devices=more, gpus=gpus)) for suite in suites]
    assert sum(step.runs for step in steps) == sum(counts)


@pytest.mark.parametrize("asked", [9, 2])
def test_gpus_that_are_asked_for_have_to_be_there(asked: int) -> None:
    with pytest.raises(RequestError, match=f"sees [08] GPUs here, not {asked}: ask for fewer"):
        prove.gpus_for([JAX, TORCH], asked, ())
    assert prove.gpus_for([JAX, TORCH], 8, ["pytorch"]) == 8


def test_what_cannot_run_is_left_out_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = replace(JAX, trouble="No module named 'flax'")
    monkeypatch.setattr(prove, "installed", lambda: ["pytorch", "jax"])
    monkeypatch.setattr(prove, "ask", lambda name, _: broken if name == "jax" else TORCH)
    assert prove.find([], {}) == [TORCH]
    assert "without jax: No module named 'flax'\n" in capsys.readouterr().out
    with pytest.raises(RequestError, match="jax: No module named 'flax'"):
        prove.find(["jax", "pytorch"], {})
    monkeypatch.setattr(prove, "installed", lambda: [])
    with pytest.raises(RequestError, match="this Python has no framework that can run"):
        prove.find([], {})


def test_a_framework_tells_its_versions_and_what_it_lacks(framework: str) -> None:
    found = prove.ask(framework, sys.executable)
    assert (found.trouble, found.gpus, found.untested) == ("", 0, [])
    assert len(found.own) >= 1
    assert found.own.items() <= found.packages.items()


def test_tests_that_cannot_be_run_are_not_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = replace(JAX, gpus=2, untested=["pytest"])
    assert list(prove.tests([TORCH, without])) == []
    (step,) = prove.tests([TORCH, replace(JAX, gpus=2)])
    assert str(step).endswith("tests/gpu --gpus=2 --framework=jax")
    prove.conclude([without, TORCH], {"a grid": True}, tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "the tests for GPUs were not run: the Python of jax lacks pytest: "
        "`python -m pip install pytest` adds them",
        "proven: jax (jax 1.0) on Python 3.13.0, on CPU devices and 2 GPUs",
        "proven: pytorch (torch 3.0) on Python 3.12.1, on CPU devices",
        f"{tmp_path} has all of it",
    ]
    kept = json.loads((tmp_path / "proof.json").read_text())
    assert kept["passed"]
    assert kept["frameworks"][0]["packages"] == {"jax": "1.0"}


def test_runs_that_leave_no_records_are_no_proof(stand_in: Path) -> None:
    running = started(stand_in, 0)
    said, complained = running.communicate(timeout=SECONDS)
    assert (running.returncode, complained.count("\n")) == (1, 1)
    assert f"1/{RUNS} frameworks.jax.scratch --devices=1\n" in said
    assert "python -m common.prove: error: not proven" in complained
    proof = stand_in.parent / "proof"
    assert "python -m frameworks.jax" in (proof / "proof.log").read_text()
    assert not json.loads((proof / "proof.json").read_text())["passed"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_whatever_ends_it_ends_what_it_runs(stand_in: Path, number: signal.Signals) -> None:
    running = started(stand_in, 1000)
    assert running.stdout
    while f"1/{RUNS}" not in running.stdout.readline():
        pass
    (child,) = children(running.pid)
    (of_child,) = children(child)
    running.send_signal(number)
    _, complained = running.communicate(timeout=SECONDS)
    assert running.returncode == (130 if number == signal.SIGINT else 143)
    assert complained.count("\n") == 1
    assert not alive(child)
    assert not alive(of_child)
