"""An environment has exactly what is pinned, and is installed once until the pins change."""

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sessions import environments

TOY = "toy-1-py3-none-any.whl"


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

    def error(self, text: str) -> None:
        raise SystemExit(text)


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that pins a package of nothing, whose wheel lies beside it."""
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(tmp_path / TOY, "w") as file:
        for name, text in files.items():
            file.writestr(f"toy-1.dist-info/{name}", text)
    monkeypatch.chdir(tmp_path)
    for tool in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        monkeypatch.setenv(tool, str(tmp_path))
    monkeypatch.setenv("UV_NO_CACHE", "1")
    Path("constraints").mkdir()
    pins = Path("constraints/toy.txt")
    pins.write_text(f"toy==1 --hash=sha256:{hashlib.sha256(Path(TOY).read_bytes()).hexdigest()}\n")
    return pins


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_it_is_installed_until_pins_or_interpreter_change(
    pins: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setattr(environments, "find_spec", lambda _: tool == "uv" or None)
    session: Any = Session()
    python = Path(environments.environment(session, "toy"))
    assert [("uv" in command) for command in session.ran] == [tool == "uv"] * 2
    subprocess.run([python, "-c", "import importlib.metadata as m; m.version('toy')"], check=True)
    environments.environment(session, "toy")
    assert len(session.ran) == 2
    python.unlink()
    environments.environment(session, "toy")
    assert len(session.ran) == 4
    pins.write_text(f"{pins.read_text()[:-2]}\n")  # another digest
    with pytest.raises(AssertionError, match=r"(?i)hash"):
        environments.environment(session, "toy")
    assert not environments.is_complete(Path(".nox/toy"), ["toy"])


@pytest.mark.parametrize(
    ("offered", "chosen"), [("2.1, 2.0+cpu, 2.0", "torch-cpu"), ("2.1+cpu, 2.0", "torch")]
)
def test_a_build_for_cpus_is_taken_where_pip_finds_it(
    pins: Path, monkeypatch: pytest.MonkeyPatch, offered: str, chosen: str
) -> None:
    Path("constraints/torch-cpu.txt").write_text("torch==2.0+cpu \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(environments, "output_of_pip", lambda *_: f"torch\nAvailable: {offered}\n")
    session: Any = Session()
    monkeypatch.setattr(session, "run_install", lambda *command: session.ran.append(command))
    Path(".nox/torch").mkdir(parents=True)
    environments.install(session, Path(".nox/torch"), ["toy", "torch-cpu"])
    asked = {each for command in session.ran for each in command if "requirement=" in each}
    assert asked == {f"--requirement=constraints/{name}.txt" for name in ("toy", chosen)}
