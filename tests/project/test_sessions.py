"""Sessions run the right commands in the right environments, with and without GPUs."""

import importlib
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from common.backends.driver import Card, Driver
from common.backends.frameworks import FRAMEWORKS
from sessions import accelerators, environments, proofs
from sessions.environments import NO_GPUS

CAPABILITIES = {"A100": (8, 0), "H100": (9, 0)}
BUILT = ("pytorch", "tensorflow", "jax")


class EndedError(Exception):
    """The error that a session ends with."""


class Session:
    """A session of nox that notes the commands that it would run."""

    def __init__(self, *posargs: str) -> None:
        self.posargs, self.env, self.ran = list(posargs), dict[str, str](), list[str]()

    def run(self, *command: str, env: dict[str, str] | None = None) -> None:
        self.ran.append(" ".join(command).replace(" -m ", ": ", 1))

    def log(self, text: str) -> None:
        pass

    def error(self, text: str) -> None:
        raise EndedError(text)

    skip = error


@pytest.fixture(scope="module")
def noxfile() -> Iterator[Any]:
    before = signal.getsignal(signal.SIGTERM)
    yield importlib.import_module("noxfile")
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def no_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed: the interpreter of an environment is its name."""

    def environment(_: Any, name: str, pins: Sequence[str] = ()) -> str:
        assert all(Path(f"constraints/{each}.txt").is_file() for each in (pins or [name]))
        return name

    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.delenv("ACCELERATOR", raising=False)
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr(environments, "environment", environment)


def give_cards(monkeypatch: pytest.MonkeyPatch, card: str, count: int = 2) -> None:
    found: Any = "there is no NVIDIA driver here"
    if card:
        found = Driver("580.95.05", (Card(f"NVIDIA {card}", CAPABILITIES[card]),) * count)
    monkeypatch.setattr(accelerators, "driver", lambda: found)


@pytest.mark.parametrize(
    ("card", "count", "gpus", "flags"),
    [
        ("", 0, (), ""),
        ("A100", 2, FRAMEWORKS, " --gpus=2"),
        ("H100", 8, BUILT, " --gpus=4 --without-gpu mxnet"),
    ],
)
def test_plain_nox_runs_and_compares_on_gpus_what_has_code_for_them(
    noxfile: Any,
    monkeypatch: pytest.MonkeyPatch,
    card: str,
    count: int,
    gpus: Sequence[str],
    flags: str,
) -> None:
    give_cards(monkeypatch, card, count)
    session: Any = Session()
    for each in FRAMEWORKS:
        noxfile.run_chapter(session, each)
    noxfile.parity(session)
    expected = []
    for each in FRAMEWORKS:
        build = f"{each}-cuda" if each in gpus else each
        grid = f"{build}: common.grid {each} --out=results"
        expected += [grid, f"{grid} {flags.split(maxsplit=1)[0]}"] if each in gpus else [grid]
    compared = f"common: common.parity results --suites --frameworks {' '.join(FRAMEWORKS)}{flags}"
    assert session.ran == [*expected, compared]


def test_without_mxnet_the_others_are_compared(
    noxfile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_cards(monkeypatch, "")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    session: Any = Session()
    with pytest.raises(EndedError, match=r"MXNet 1\.9\.1 cannot be had here: it has no wheel for"):
        noxfile.run_chapter(session, "mxnet")
    noxfile.parity(session)
    assert session.ran[-1].endswith(" --suites --frameworks pytorch tensorflow jax")


def test_tests_see_no_gpu(noxfile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    give_cards(monkeypatch, "A100")
    session: Any = Session("-x")
    noxfile.tests(session)
    assert session.env == NO_GPUS
    assert len([command for command in session.ran if ": pytest " in command]) == 6


def test_gpus_are_timed_and_proven_in_one_session(
    noxfile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_cards(monkeypatch, "")
    for run, given in ((proofs.gpu, ()), (noxfile.bench, ("--gpus=2",))):
        session: Any = Session(*given)
        with pytest.raises(EndedError, match="no framework has a GPU here: see the lines above"):
            run(session)
        assert session.ran == []
    give_cards(monkeypatch, "H100", 8)
    session = Session("jax", "mxnet")
    proofs.gpu(session)
    timed = "--python=jax=bench-jax-cuda --gpus=4 --rounds=1"
    proven = "--python=jax=jax-cuda --python=mxnet=mxnet --gpus=4 --without-gpu mxnet"
    assert session.ran == [
        f"common: bench {timed} --out=results/on-gpus",
        f"common: common.prove {proven} --more-devices --out=results/on-gpus",
    ]
