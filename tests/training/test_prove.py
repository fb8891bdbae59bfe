"""The proof of an environment claims no more than it ran."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from started import OFFLINE, ROOT, SECONDS, children, require_gone, with_signals

from common import prove
from common.base.errors import RequestError
from common.prove import Setup

JAX = Setup("jax", "/opt/jax", "3.13.0", 8, {"jax": "1.0"}, "")
TORCH = Setup("pytorch", "python", "3.12.1", 0, {"torch": "3.0"}, "")


def start(folder: Path, seconds: int) -> "subprocess.Popen[str]":
    """Starts the proof of a program that says it is a Python with JAX; its runs last so long."""
    (stand_in := folder / "python").write_text(f"""#!/bin/sh
case $1 in
-c) echo '{json.dumps(asdict(replace(JAX, gpus=0)))}' ;;
*) sleep $WAIT & echo '1/9 jax scratch'; echo "data: ${{FASHION_MNIST_DIR-unknown}}"; wait ;;
esac
""")
    stand_in.chmod(0o755)
    command = ["-m", "common.prove", f"--python=jax={stand_in}", f"--out={folder}/proof"]
    variables = {"WAIT": str(seconds), "PATH": "/bin:/usr/bin", "HOME": str(folder), **OFFLINE}
    with with_signals():
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.parametrize("more", ["", " --more-devices"])
def test_gpus_are_used_where_they_are_seen(more: str) -> None:
    found = [TORCH, replace(JAX, gpus=2, untested="no pytest")]
    *ran, compared = map(prove.command_line, prove.steps(found, Path("r"), more_devices=bool(more)))
    torch, jax = (f"python -m common.grid {each} --out=r" for each in ("pytorch", "jax"))
    on_gpus = f"{jax} --gpus=2"
    added = {f"{each}{more}" for each in (torch, jax, on_gpus)}
    assert (len(ran), {*ran}) == (3 * (1 + bool(more)), {torch, jax, on_gpus} | added)
    flags = f"--planned --frameworks pytorch jax{more} --gpus=2 --without-gpu pytorch"
    assert compared == f"python -m common.parity r {flags}"


def test_gpus_that_are_asked_for_have_to_be_there() -> None:
    torch = ["pytorch"]
    for asked, without, gpus in ((None, (), 4), (8, torch, 8), (2, torch, 2), (0, (), 0)):
        found = prove.limit_gpus([JAX, TORCH], asked, without)
        assert [each.gpus for each in found] == [gpus, 0]
    for asked in (9, 2):
        with pytest.raises(RequestError, match=f"sees [08] GPUs here, not {asked}: ask for fewer"):
            prove.limit_gpus([JAX, TORCH], asked, ())


def test_a_framework_tells_its_versions(framework: str) -> None:
    found = prove.probe(framework, sys.executable)
    assert (found.gpus, found.untested) == (0, "")
    assert found.packages


def test_tests_that_cannot_be_run_are_not_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    able = replace(JAX, gpus=2)
    *_, tested, _ = map(prove.command_line, prove.steps([able], tmp_path, more_devices=False))
    assert tested.endswith("tests/gpu --gpus=2 --framework=jax")
    without = replace(able, untested="this Python lacks pytest")
    prove.conclude([without, TORCH], tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "passed: jax (jax 1.0) on Python 3.13.0, on CPU devices and 2 GPUs, without the tests for "
        "GPUs: this Python lacks pytest",
        "passed: pytorch (torch 3.0) on Python 3.12.1, on CPU devices",
        f"the results are in {tmp_path}",
    ]


def test_runs_that_leave_no_records_are_no_proof(tmp_path: Path) -> None:
    running = start(tmp_path, 0)
    said, complained = running.communicate(timeout=SECONDS)
    decided, failed = complained.splitlines()
    assert running.returncode == 1
    assert "\n1/9 jax scratch\ndata: \n" in said
    assert decided.startswith("all runs train on drawn images: no Fashion-MNIST here")
    assert failed.startswith("python -m common.prove: error: these have failed")
    log = (tmp_path / "proof/proof.log").read_text()
    assert "1/9 jax scratch\n" in log
    assert "jax (jax 1.0) on Python 3.13.0" in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_whatever_ends_it_ends_what_it_runs(tmp_path: Path, number: signal.Signals) -> None:
    running = start(tmp_path, 1000)
    assert running.stdout
    assert any(line.startswith("1/9") for line in iter(running.stdout.readline, ""))
    (child,) = children(running.pid)
    (of_child,) = children(child)
    running.send_signal(number)
    _, complained = running.communicate(timeout=SECONDS)
    assert running.returncode == (130 if number == signal.SIGINT else 143)
    assert complained.count("\n") == 2
    require_gone([child, of_child])  # the latter has no parent left
