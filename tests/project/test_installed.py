"""Pins are consistent, and an environment has exactly the pinned packages."""

import hashlib
import importlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sessions.pins import PINS, versions, wanted

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"[a-z0-9-]+==\S+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n")
MAY_PUBLISH = "\n    permissions:\n      pages: write\n      id-token: write\n"
"""What the job that publishes the site may do, and no other."""


def read(name: str) -> str:
    return (ROOT / f"constraints/{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*PINS, "torch-cpu"])
def test_a_file_pins_what_the_project_asks_for_with_digests(name: str) -> None:
    comments = re.sub(PIN, "", read(name)).splitlines()
    assert all(line.startswith("# ") for line in comments), comments
    pinned = versions(read(name)) | versions(read("torch") if "pytorch" in name else "")
    for need in map(Requirement, wanted(name) if name in PINS else ()):
        assert pinned[canonicalize_name(need.name)] in need.specifier, need
    on_cpus = versions(read(name.removesuffix("-cuda")))
    assert {
        each for each in on_cpus.keys() & pinned.keys() if on_cpus[each] != pinned[each]
    } == set()
    if not re.search("cuda|torch$|bench-jax|d2l", name):  # what needs no GPU gets no CUDA
        cuda = re.compile("nvidia|cuda|triton|torch|.*-cu[0-9]")
        assert name == "torch-cpu" or not [*filter(cuda.match, versions(read(name)))]


@pytest.mark.parametrize(
    "path",
    sorted(ROOT.glob(".github/workflows/*")),
    ids=lambda x: x.name,
)
def test_a_workflow_may_read_and_installs_what_is_checked(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "\npermissions:\n  contents: read\n\n" in text
    assert text.count(MAY_PUBLISH) == (path.name == "pages.yml")
    assert not re.search(
        "permissions:|write", text.replace(MAY_PUBLISH, "").partition("\njobs:")[2]
    )
    for action in re.findall(r"\buses: *(.*)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    for command in re.findall(r".*\binstall\b(?!-only).*", text):
        assert command.endswith("pip install --require-hashes -r constraints/nox.txt"), command


class Session:
    """A session of nox that runs its commands, and notes them."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run_install(self, *command: str) -> None:
        self.ran.append(command)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def log(self, text: str) -> None:
        pass


class Quiet(Session):
    """A session of nox that only notes its commands."""

    def run_install(self, *command: str) -> None:
        self.ran.append(command)


def an_environment() -> Path:
    """The folder of an environment that has only the folder of its libraries."""
    folder = Path(".nox/one")
    (folder / f"lib/python3.{sys.version_info.minor}/site-packages").mkdir(parents=True)
    return folder


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that pins a package of nothing, with its wheel next to it."""
    wheel = tmp_path / "toy-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        metadata = "Metadata-Version: 2.1\nName: toy\nVersion: 1\n"
        file.writestr("toy-1.dist-info/METADATA", metadata)
        kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr("toy-1.dist-info/WHEEL", kind)
        file.writestr("toy-1.dist-info/RECORD", "")
    monkeypatch.chdir(tmp_path)
    for tool in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        monkeypatch.setenv(tool, str(tmp_path))
    monkeypatch.setenv("UV_NO_CACHE", "1")
    pins = Path("constraints/toy.txt")
    pins.parent.mkdir()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pins.write_text(f"toy==1 --hash=sha256:{digest}\n")
    return pins


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_an_environment_is_installed_until_pins_or_interpreter_change(
    pins: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    environments: Any = importlib.import_module("sessions.environments")
    monkeypatch.setattr(environments, "find_spec", lambda name: name in (tool, "pip") or None)
    session: Any = Session()
    python = Path(environments.environment(session, "toy"))
    assert [("uv" in command) for command in session.ran] == [tool == "uv"] * 2
    Path("mine.py").touch()  # of the project
    used = "import importlib.metadata as m, sys, mine; print(m.version('toy'), sys.path[-1])"
    seen = subprocess.check_output([python.absolute(), "-c", used], cwd="/", text=True)
    assert seen == f"1 {Path.cwd()}\n"
    environments.environment(session, "toy")
    assert len(session.ran) == 2
    python.unlink()
    environments.environment(session, "toy")
    assert len(session.ran) == 4
    pins.write_text(f"{pins.read_text()[:-2]}\n")  # another digest
    with pytest.raises(AssertionError, match=r"(?i)hash"):
        environments.environment(session, "toy")
    assert not environments.is_complete(Path(".nox/toy"), ["toy"])


@pytest.mark.usefixtures("pins")
def test_pip_s_settings_are_read_in_a_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    environments: Any = importlib.import_module("sessions.environments")
    environments.pip.cache_clear()
    monkeypatch.setattr(environments, "find_spec", lambda name: name == "uv" or None)
    session, folder = Quiet(), an_environment()
    assert "uv" in environments.new_environment(session, folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # which uv does not know
    assert "uv" not in environments.new_environment(session, folder)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("2.1, 2.0+cpu, 2.0", "torch-cpu"),
        ("2.1+cpu, 2.0", "torch"),
    ],
)
def test_a_build_for_cpus_is_taken_where_pip_finds_it(
    pins: Path, monkeypatch: pytest.MonkeyPatch, offered: str, chosen: str
) -> None:
    environments: Any = importlib.import_module("sessions.environments")
    Path("constraints/torch-cpu.txt").write_text("torch==2.0+cpu \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(environments, "output_of_pip", lambda *_: f"torch\nAvailable: {offered}\n")
    monkeypatch.setattr(environments, "pip", lambda: ["pip"])
    session: Any = Quiet()
    environments.install(session, an_environment(), ["toy", "torch-cpu"])
    asked = {flag for command in session.ran for flag in command if "requirement=" in flag}
    assert asked == {f"--requirement=constraints/{name}.txt" for name in ("toy", chosen)}
