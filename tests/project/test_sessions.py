"""What the sessions run with cards that are made up, and in which environments."""

import importlib
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.backends.driver import Card, Driver
from common.backends.frameworks import FRAMEWORKS
from sessions import accelerators, environments, newest
from sessions.checks import look_up
from sessions.environments import NO_GPUS
from sessions.faults import started
from sessions.gpu import gpu

CARDS = {"A100": (8, 0), "H100": (9, 0)}
SUITES = ["--suites", "--frameworks"]


class EndedError(Exception):
    """What a session ends with."""


class Session:
    """A session of nox that notes what it would run."""

    def __init__(self, *posargs: str) -> None:
        self.posargs, self.env = list(posargs), dict[str, str]()
        self.said, self.ran = list[str](), list[str]()
        self.log = self.said.append

    def run(self, *command: str, env: dict[str, str] | None = None) -> None:
        assert not NO_GPUS.keys() & (env or {}).keys()
        self.ran.append(" ".join(command).replace(" -m ", ": ", 1))

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
    """Instead of an environment's Python there is its name; it is installed from what there is."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.delenv("ACCELERATOR", raising=False)
    monkeypatch.chdir(Path(__file__).parents[2])

    def environment(_: Any, name: str, pins: Sequence[str] = (), alone: Sequence[str] = ()) -> str:
        assert all(file.is_file() for file in environments.files([*(pins or [name]), *alone]))
        return name

    monkeypatch.setattr(environments, "environment", environment)


@pytest.fixture
def has(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives the machine so many cards of a kind."""

    def give(card: str, count: int = 2) -> None:
        found: Any = "there is no NVIDIA driver here"
        if card:
            found = Driver("580.95.05", (Card(f"NVIDIA {card}", CARDS[card]),) * count)
        monkeypatch.setattr(accelerators, "driver", lambda: found)

    return give


def plain(noxfile: Any) -> Session:
    """What `nox` alone does."""
    session: Any = Session()
    assert noxfile.nox.options.sessions == [*FRAMEWORKS, "parity"]
    for each in FRAMEWORKS:
        noxfile.run_framework(session, each)
    noxfile.parity(session)
    found: Session = session
    return found


def grids(framework: str, cuda: str, *flags: str, out: str = "results") -> list[str]:
    command = f"{framework}{cuda}: common.grid {framework} --out={out}"
    if (framework + cuda, out) == ("jax", "results"):  # without kept programs, and with them
        plain = [f"{command} --chapter {chosen}" for chosen in ("scratch concise", "strategies")]
    else:
        plain = [command]
    return [*plain, *(f"{command} {flag}" for flag in flags)]


def test_two_cards_that_serve_all(noxfile: Any, has: Callable[..., None]) -> None:
    has("A100")
    session = plain(noxfile)
    why = "2 x NVIDIA A100, driver 580.95.05"
    assert session.said == [f"{each} runs in .nox/{each}-cuda: {why}" for each in FRAMEWORKS]
    runs = [run for each in FRAMEWORKS for run in grids(each, "-cuda", "--gpus=2")]
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS, "--gpus=2"])
    assert session.ran == [*runs, compared]


def test_cards_that_mxnet_has_no_code_for(noxfile: Any, has: Callable[..., None]) -> None:
    has("H100", 8)
    session = plain(noxfile)
    assert "mxnet runs in .nox/mxnet: its build of CUDA 11.2 is for" in session.said[-1]
    runs = [run for each in FRAMEWORKS[:3] for run in grids(each, "-cuda", "--gpus=4")]
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS, "--gpus=4"])
    assert session.ran == [*runs, *grids("mxnet", ""), f"{compared} --without-gpu mxnet"]


def test_without_gpus_or_where_they_are_not_wanted_all_runs_on_cpus(
    noxfile: Any, has: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    has("A100")
    monkeypatch.setenv("ACCELERATOR", "cpu")
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS])
    expected = [*(run for each in FRAMEWORKS for run in grids(each, "")), compared]
    assert plain(noxfile).ran == expected


def test_cuda_that_cannot_be_is_an_error(
    noxfile: Any, has: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    has("H100")
    monkeypatch.setenv("ACCELERATOR", "cuda")
    session: Any = Session()
    with pytest.raises(EndedError, match=r"mxnet: its build of CUDA 11\.2"):
        noxfile.run_framework(session, "mxnet")
    assert session.ran == []


def test_without_mxnet_the_others_are_compared(
    noxfile: Any, has: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    has("")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    session: Any = Session()
    with pytest.raises(EndedError, match=r"MXNet 1\.9\.1 cannot be had here: it has no wheel for"):
        noxfile.run_framework(session, "mxnet")
    noxfile.parity(session)
    assert session.ran == [" ".join(["common: common.parity results", *SUITES, *FRAMEWORKS[:3]])]


def test_an_audit_that_can_look_up_nothing_says_so() -> None:
    said: list[str] = []
    session: Any = SimpleNamespace(run=lambda *_, **__: None, warn=said.append)
    assert list(look_up(session, "python")) == []
    assert said == ["NOT AUDITED: no weaknesses can be looked up from here"]


def test_tests_see_no_gpu(noxfile: Any, has: Callable[..., None]) -> None:
    has("A100")
    session: Any = Session("-x")
    noxfile.tests(session)
    assert session.env == NO_GPUS
    assert len([command for command in session.ran if ": pytest " in command]) == 6


def test_the_proof_is_one_session(has: Callable[..., None]) -> None:
    has("H100", 8)
    session: Any = Session("jax", "mxnet")
    gpu(session)
    out = "results/on-gpus"
    pythons = "--python=jax=jax-cuda --python=mxnet=mxnet"
    assert session.ran == [
        f"common: bench --python=jax=bench-jax-cuda --gpus=4 --rounds=1 --out={out}",
        f"common: common.prove --out={out} --more-devices {pythons} --gpus=4 --without-gpu mxnet",
    ]


def test_the_proof_takes_interpreters_of_ones_own(has: Callable[..., None]) -> None:
    own = ["--python", "jax=/opt/venv/bin/python"]
    has("H100")
    session: Any = Session(*own)
    gpu(session)
    assert session.ran == [
        " ".join(["common: common.prove --out=results/on-gpus --more-devices --gpus=2", *own])
    ]
    has("")
    with pytest.raises(EndedError, match="there is no NVIDIA driver here"):
        gpu(session)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A page with the table of what was proven, and no proof yet."""
    monkeypatch.setattr(newest, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(newest, "PAGE", tmp_path / "page.md")
    old = "| jax | 3.12.1 | jax 0.1, numpy 2.0 | NO | 2031-02-03 |"
    other = old.replace("jax", "mxnet")
    table = "\n".join(["| framework |", "| --- |", old, other])
    path = tmp_path / "page.md"
    path.write_text(
        f"Before.\n\n<!-- newest: nox -s newest -->\n\n{table}\n\n<!-- newest end -->\n"
    )
    return path


def proof(framework: str, python: str, passed: bool) -> None:
    """What a proof leaves."""
    path = newest.folder_of(framework, python)
    path.mkdir(parents=True)
    found = {
        "version": f"{python}.7",
        "own": {"jax": "0.2"},
        "packages": {"numpy": "2.1", "rich": "9"},
    }
    told = {"passed": passed, "ended": "2031-04-05T06:07:08+00:00", "frameworks": [found]}
    (path / "proof.json").write_text(json.dumps(told))


def test_the_newest_releases_are_proven_in_environments_of_their_own(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "installed", lambda: iter([newest.HERE, "3.19"]))
    session: Any = Session("mxnet", "jax")
    newest.newest(session)
    assert session.env == NO_GPUS
    out = newest.folder_of("jax", "3.19")
    assert session.ran[-3:] == [
        "python3.19: venv --clear .nox/newest-jax-3.19",
        f".nox/newest-jax-3.19/bin/python: pip install --quiet --upgrade "
        f"{' '.join(newest.needed('jax'))}",
        f".nox/newest-jax-3.19/bin/python: common.prove jax --out={out}",
    ]
    assert {"jax", "flax", "optax", "pydantic>=2.11"} <= {*newest.needed("jax")}
    assert len([each for each in session.ran if "prove mxnet" in each]) == 1
    assert "0.1" in page.read_text()


def test_the_table_gets_what_was_proven_and_keeps_the_rest(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def proves(_: Any, framework: str, python: str) -> bool:
        passed = python != "3.13"
        proof(framework, python, passed)
        return passed

    monkeypatch.setattr(newest, "proven", proves)
    session: Any = Session("--write", "jax", "3.12", "3.13")
    with pytest.raises(EndedError, match=r"not proven: jax on Python 3\.13, see"):
        newest.newest(session)
    lines = page.read_text().splitlines()
    assert lines[4:-2] == [
        "| framework | Python | versions | proven | on |",
        "| --- | --- | --- | --- | --- |",
        "| jax | 3.12.7 | jax 0.2, numpy 2.1 | yes | 2031-04-05 |",
        "| jax | 3.13.7 | jax 0.2, numpy 2.1 | NO | 2031-04-05 |",
        "| mxnet | 3.12.1 | mxnet 0.1, numpy 2.0 | NO | 2031-02-03 |",
    ]
    assert (lines[0], lines[-1]) == ("Before.", "<!-- newest end -->")


def test_what_needs_a_gpu_says_so(noxfile: Any, has: Callable[..., None]) -> None:
    has("")
    for session, run in ((Session(), gpu), (Session("--gpus=2"), noxfile.bench)):
        proof: Any = run
        with pytest.raises(EndedError, match="no framework has a GPU here: see the lines above"):
            proof(session)
        assert session.ran == []


def test_notebooks_use_gpus_and_the_benchmark_may(noxfile: Any, has: Callable[..., None]) -> None:
    has("H100")
    session: Any = Session("jax")
    noxfile.notebooks(session)
    assert session.ran == ["notebooks-jax-cuda: notebooks.execute jax"]
    for flags, names in (
        ((), [f"{each}=bench-{each}" for each in FRAMEWORKS]),
        (("--gpus", "2"), [f"{each}=bench-{each}-cuda" for each in FRAMEWORKS[:3]]),
    ):
        session = Session(*flags)
        noxfile.bench(session)
        pythons = " ".join(f"--python={each}" for each in names)
        assert session.ran == [" ".join([f"common: bench {pythons} --out=results", *flags])]


@pytest.mark.parametrize("why", [KeyboardInterrupt, ValueError])
def test_what_ends_the_session_that_kills_a_run_ends_the_run(why: type[BaseException]) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with pytest.raises(why), started(command) as run:
        raise why
    assert run.returncode == -signal.SIGTERM
