"""Sessions run the right commands in the right environments: for GPUs where these suit."""

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base import machine
from common.base.errors import RequestError
from common.base.machine import Card, find_cards
from sessions import accelerators, checks, environments
from sessions.accelerators import BUILDS, choose

AMPERE, HOPPER = ("NVIDIA A100", (8, 0)), ("NVIDIA H100", (9, 0))
PAGE = (Path(__file__).parents[2] / "docs/gpu.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


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


@pytest.mark.parametrize(
    ("version", "card", "cuda", "why"),
    [
        ("580.65.06", AMPERE, FRAMEWORKS, ""),
        ("580.65", AMPERE, FRAMEWORKS[1:], "580.65 is too old for CUDA 13.0, which takes 580.65"),
        ("1000.1", HOPPER, FRAMEWORKS[:3], "5.0 to 8.9, and not for 1 x NVIDIA H100 (9.0)"),
        ("1000.1", ("NVIDIA X", None), FRAMEWORKS, ""),
    ],
)
def test_a_build_is_chosen_if_driver_and_card_suit_it(
    version: str, card: tuple[str, Any], cuda: tuple[str, ...], why: str
) -> None:
    cards = (Card(version, *card),)
    assert [choose("jax", asked, ()).cuda for asked in ("", "cuda")] == [False, True]
    assert choose("jax", "cpu", cards).why == "ACCELERATOR=cpu"
    assert tuple(name for name in FRAMEWORKS if choose(name, "", cards).cuda) == cuda
    for name in set(FRAMEWORKS) - set(cuda):
        assert why in choose(name, "", cards).why
        with pytest.raises(RequestError, match=f"{re.escape(why)}.*; ACCELERATOR=cpu does"):
            choose(name, "cuda", cards)


def test_the_page_has_the_builds_and_the_lines() -> None:
    for name, build in BUILDS.items():
        names = {"x86_64": "x86-64", "aarch64": "ARM"}
        machines = ", ".join(names[machine] for machine in build.machines)
        cells = name, build.cuda, build.driver, build.cards(), machines
        assert f"| {' | '.join(map(str, cells))} |" in PAGE
    jax = choose("jax", "", (Card("580.95.05", "NVIDIA A100-SXM4-40GB", (8, 0)),) * 2)
    assert f"jax runs in .nox/{jax.name}: {jax.why}" in PAGE
    assert f"`{choose('pytorch', '', (Card('535.183.01', *AMPERE),)).why}`" in PAGE
    assert f"`{choose('jax', '', ()).why}`" in PAGE


@pytest.mark.parametrize(
    ("answer", "visible", "expected"),
    [
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", None, ["X", "Y"]),
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", "1,0", ["Y", "X"]),
        ("echo 580.1, X, 9.0; echo 580.1, Y, 8.0", "MIG-1f", ["X"]),
        ("echo 580.1, X, 9.0", "-1", []),
        ("echo 'GPU is lost.'; echo '418.8, V100, [N/A]'; exit 15", None, ["V100"]),
        ("exec sleep 60", None, []),
    ],
)
def test_what_nvidia_smi_answers(
    answer: str,
    visible: str | None,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(machine, "DRIVER_TIMEOUT", 1)
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert [card.name for card in find_cards(visible)] == expected
