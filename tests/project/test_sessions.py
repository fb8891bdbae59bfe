"""Sessions run the right commands in the right environments, with and without GPUs."""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base.machine import Card
from sessions import accelerators, checks, environments


class EndedError(Exception):
    """The error that a session ends with."""


class Session:
    """A session of nox that notes the commands that it would run."""

    def __init__(self, *posargs: str) -> None:
        self.posargs, self.ran, self.env = list(posargs), list[str](), dict[str, str]()

    def run(self, *command: str, env: dict[str, str] | None = None, **_: Any) -> str:
        self.ran.append(" ".join(command).replace(" -m ", ": ", 1))
        return "/data\n"

    def log(self, text: str) -> None:
        pass

    def error(self, text: str) -> None:
        raise EndedError(text)

    skip = error


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The interpreter of an environment is its name."""

    def environment(_: Any, name: str, pins: Sequence[str] = ()) -> str:
        assert all(Path(f"constraints/{file}.txt").is_file() for file in (pins or [name]))
        return name

    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.delenv("ACCELERATOR", raising=False)
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr(environments, "environment", environment)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    os.environ.pop("FASHION_MNIST_DIR", None)
    found = importlib.import_module("noxfile")
    monkeypatch.setattr(found, "GRIDS", [])
    return found


def give_cards(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    cards = (Card("580.95.05", "NVIDIA H100", (9, 0)),) * count
    monkeypatch.setattr(accelerators, "cards_here", lambda: cards)


@pytest.mark.parametrize(
    ("machine", "cards", "gpus", "flags"),
    [
        ("x86_64", 0, (), " mxnet"),
        ("x86_64", 8, FRAMEWORKS[:3], " mxnet --gpus=4 --without-gpu mxnet"),
        ("aarch64", 0, (), ""),
    ],
)
def test_plain_nox_runs_and_compares_what_can_be_had(
    noxfile: Any,
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    cards: int,
    gpus: Sequence[str],
    flags: str,
) -> None:
    give_cards(monkeypatch, cards)
    monkeypatch.setattr("platform.machine", lambda: machine)
    session: Any = Session()
    noxfile.parity(session)  # by itself, it prints its tables
    compared = "common: common.parity results --planned --frameworks pytorch tensorflow jax"
    expected = [f"{compared}{flags}"]
    expected.append(f"common -c {noxfile.DECIDE}")  # once: later sessions find the variable
    for framework in FRAMEWORKS[: 3 + (machine == "x86_64")]:
        noxfile.run_chapter(session, framework)
        build = f"{framework}-cuda" if framework in gpus else framework
        grid = f"{build}: common.grid {framework} --out=results"
        expected += [grid, f"{grid} --gpus=4"] if framework in gpus else [grid]
    noxfile.parity(session)
    assert session.ran == [*expected, f"{compared}{flags} --brief"]
    assert os.environ["FASHION_MNIST_DIR"] == "/data"
    if machine == "aarch64":
        with pytest.raises(EndedError, match=r"MXNet 1\.9\.1 cannot be had here: it has no wheel"):
            noxfile.run_chapter(session, "mxnet")


@pytest.mark.usefixtures("noxfile")
def test_gpus_are_timed_and_compared_in_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    give_cards(monkeypatch, 0)
    session: Any = Session("jax", "mxnet")
    with pytest.raises(EndedError, match="no framework has a GPU here: see the lines above"):
        checks.gpu(session)
    give_cards(monkeypatch, 8)
    checks.gpu(session)
    prove = "common: common.prove jax=jax-cuda mxnet=mxnet --more-devices --out=results/on-gpus"
    assert session.ran == [
        "common: bench --python=jax=bench-jax-cuda --gpus=4 --rounds=1 --out=results/on-gpus",
        "jax-cuda: pytest tests/gpu --gpus=4 --framework jax",
        f"{prove} --gpus=4 --without-gpu mxnet",
    ]
