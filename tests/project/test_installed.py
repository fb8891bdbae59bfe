"""Pins are consistent, and an environment has exactly the pinned packages."""

import hashlib
import os
import re
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sessions import environments
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


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/workflows/*")), ids=lambda x: x.name)
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

    def run_install(self, *command: str, env: Mapping[str, str] | None = None, **_: bool) -> None:
        self.ran.append(command)
        env = {**os.environ, **(env or {})}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def log(self, text: str) -> None:
        pass


def make_wheel(path: Path) -> str:
    """Makes the wheel of a package of nothing; returns its digest."""
    name, version, *_ = path.name.split("-")
    folder = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        file.writestr(f"{folder}/METADATA", metadata)
        kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{folder}/WHEEL", kind)
        file.writestr(f"{folder}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that pins a package of nothing, with its wheel next to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setattr(environments, "settings_of_pip", dict)
    digest = make_wheel(Path("toy-1-py3-none-any.whl"))
    pins = Path("constraints/toy.txt")
    pins.parent.mkdir()
    pins.write_text(f"toy==1 --hash=sha256:{digest}\n")
    return pins


def test_an_environment_has_the_pinned_packages_and_the_project(pins: Path) -> None:
    session: Any = Session()
    python = Path(environments.environment(session, "toy"))
    Path("mine.py").touch()  # of the project
    used = "import importlib.metadata as m, sys, mine; print(m.version('toy'), sys.path[-1])"
    seen = subprocess.check_output([python.absolute(), "-c", used], cwd="/", text=True)
    assert seen == f"1 {Path.cwd()}\n"
    environments.environment(session, "toy")
    assert [command[3] for command in session.ran] == ["--clear", "install", "install"]
    python.unlink()
    environments.environment(session, "toy")
    assert len(session.ran) == 5
    python.unlink()
    pins.write_text(pins.read_text()[:-5] + "beef\n")  # another digest
    with pytest.raises(AssertionError, match=r"(?i)hash"):
        environments.environment(session, "toy")


def test_uv_is_told_what_pip_knows_of_indexes_in_a_python_without_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "find_spec", lambda _: None)
    environments.settings_of_pip.cache_clear()
    for name in (*environments.OF_PIP.values(), "PIP_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    settings = "index-url = https://a/simple\nextra-index-url =\n  https://b\n  https://c\n"
    (tmp_path / "pip.conf").write_text(f"[global]\n{settings}no-index = true\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://d")  # decides
    monkeypatch.setenv("UV_NO_INDEX", "0")  # uv's own stays
    found = environments.settings_of_pip()
    environments.settings_of_pip.cache_clear()
    expected = {"UV_DEFAULT_INDEX": "https://a/simple", "UV_INDEX": "https://d"}
    assert {name: found.get(name) for name in expected} == expected
    assert not found.keys() & {"UV_NO_INDEX", "UV_FIND_LINKS"}


@pytest.mark.parametrize(("offered", "chosen"), [("2.0+cpu", "torch-cpu"), ("2.0", "torch")])
def test_a_build_for_cpus_is_taken_where_an_index_has_it(
    pins: Path, monkeypatch: pytest.MonkeyPatch, offered: str, chosen: str
) -> None:
    digest = make_wheel(Path(f"torch-{offered}-py3-none-any.whl"))
    for name, version in {"torch-cpu": "2.0+cpu", "torch": "2.0"}.items():
        path = pins.parent / f"{name}.txt"
        path.write_text(f"torch=={version} --hash=sha256:{digest}\n")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    session: Any = Session()
    files = tuple(f"--requirement=constraints/{name}.txt" for name in ("toy", chosen))
    environments.environment(session, "one", ["toy", "torch-cpu"])
    assert session.ran[-1][-2:] == files
    # Without a network.
    for name, value in {"FIND_LINKS": "constraints", "HTTP_RETRIES": "0"}.items():
        monkeypatch.setenv(f"UV_{name}", value)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("UV_NO_INDEX")
    environments.environment(session, "one", ["toy", "torch-cpu"])
    assert session.ran[-1][-2:] == files
