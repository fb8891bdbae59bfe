"""An environment is made once, of what is listed, and made again as soon as its recipe changes."""

import ensurepip
import hashlib
import os
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sessions import environments
from sessions.environments import Environment, sources_of_pip


def install_python(made: Environment) -> None:
    """Puts an interpreter there, as `venv` does: a link."""
    made.python.parent.mkdir(parents=True)
    made.python.symlink_to(sys.executable)


def test_an_environment_is_complete_until_its_recipe_changes(tmp_path: Path) -> None:
    files = pins, build, alone = [tmp_path / f"{name}.txt" for name in ("pins", "build", "alone")]
    for file in files:
        file.write_text("numpy==1\n")
    made = Environment(tmp_path / "made", [pins], [build], [alone])
    install_python(made)
    assert not made.complete()
    made.confirm()
    assert made.complete()
    assert not replace(made, pins=[pins, alone]).complete()
    assert not replace(made, alone=[]).complete()
    for file in files:
        file.write_text("numpy==2\n")
        assert not made.complete()
        made.confirm()
    made.python.unlink()
    made.python.symlink_to(tmp_path / "gone")
    assert not made.complete()


def test_half_a_program_of_jax_is_no_longer_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    whole = zlib.compress(b"a program" * 99)
    written = {"whole": whole, "half": whole[: len(whole) // 2], "empty": b"", "none": b"a program"}
    kept = Path(environments.kept_programs("jax")["JAX_COMPILATION_CACHE_DIR"])
    kept.mkdir(parents=True)
    for name, content in written.items():
        (kept / f"{name}-cache").write_bytes(content)
    environments.kept_programs("jax")
    assert [each.name for each in kept.iterdir()] == ["whole-cache"]
    assert not environments.kept_programs("pytorch")


@pytest.mark.parametrize("tried", ["uv", "uv fails", "no uv"])
def test_uv_makes_it_or_else_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: str
) -> None:
    monkeypatch.setattr(environments, "pip_settings", lambda: {"find-links": "/wheels"})
    monkeypatch.setattr(environments, "find_spec", lambda _: tried != "no uv" or None)
    files = [tmp_path / name for name in ("jax.txt", "notebooks.txt", "d2l.txt")]
    for file in files:
        file.touch()
    made = Environment(tmp_path / "made", files[:2], alone=files[2:])
    ran: list[tuple[list[str], Mapping[str, str]]] = []

    def run(*command: str, env: Mapping[str, str] | None = None) -> None:
        if "uv" in command and tried == "uv fails":
            raise OSError("there is no such package")
        ran.append(([*command], env or {}))
        if "--clear" in command:
            install_python(made)

    made.make(run)
    assert made.complete()
    (begin, _), *installs = ran
    assert ("uv" in begin) == (tried == "uv")
    asked = [[each for each in command if each.startswith("--re")] for command, _ in installs]
    wanted = [f"--requirement={file}" for file in files]
    assert asked == [["--require-hashes", *wanted[:2]], ["--require-hashes", wanted[2]]]
    assert "--no-deps" in installs[1][0]
    places = {"UV_FIND_LINKS": "/wheels", "UV_INDEX_STRATEGY": "unsafe-best-match"}
    assert all(env == (places if tried == "uv" else {}) for _, env in ran)


def test_uv_looks_where_pip_does(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (
        "global.index-url='https://one.example'\ninstall.index-url='https://two.example'\n"
        "wheel.index-url='https://three.example'\nglobal.timeout='60'\n"
        ":env:.extra-index-url='https://four.example https://five.example'\n"
        "global.find-links='/wheels\\n/more'"
    )
    answer = subprocess.CompletedProcess([], 0, stdout=listed)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    assert sources_of_pip() == {
        "UV_DEFAULT_INDEX": "https://two.example",
        "UV_INDEX": "https://four.example https://five.example",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.parametrize(
    ("offered", "chosen"), [("2.1, 2.0+cpu, 2.0", "cpu"), ("2.1+cpu, 2.0", "other")]
)
def test_a_build_for_cpus_is_taken_where_it_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: str, chosen: str
) -> None:
    answer = subprocess.CompletedProcess([], 0, stdout=f"torch\nAvailable versions: {offered}\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    cpu, other = tmp_path / "cpu.txt", tmp_path / "other.txt"
    cpu.write_text("torch==2.0+cpu \\\n    --hash=sha256:0\n")
    other.write_text("torch==2.0 \\\n    --hash=sha256:1\n")
    *_, (_, install) = Environment(tmp_path / "made", [], [cpu, other]).ways()
    assert install[-1] == f"--requirement={tmp_path / chosen}.txt"


def wheel(folder: Path, name: str, needs: str = "") -> str:
    """The digest of a wheel, made here, of a package of nothing."""
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for each, text in files.items():
            file.writestr(f"{name}-1.dist-info/{each}", text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("tool", [0, -1], ids=["uv", "pip"])
def test_only_what_is_listed_is_installed(tmp_path: Path, tool: int) -> None:
    toy, needy = wheel(tmp_path, "toy"), wheel(tmp_path, "needy", "Requires-Dist: toy\n")
    pins = tmp_path / "pins.txt"
    (_, install) = list(Environment(Path(sys.prefix), [pins]).ways())[tool]
    (pip,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")  # as a new one has it
    zipfile.ZipFile(pip).extractall(tmp_path / "pip")
    places = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "UV_FIND_LINKS": str(tmp_path)}
    places |= {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "PYTHONPATH": str(tmp_path / "pip"),
    }
    for line in ("", f"toy==1 --hash=sha256:{needy}", f"toy==1 --hash=sha256:{toy}"):
        pins.write_text(f"needy==1 --hash=sha256:{needy}\n{line}\n")
        command = [*install, f"--target={tmp_path / 'made'}"]
        done = subprocess.run(
            command, env=os.environ | places, capture_output=True, text=True, check=False
        )
        right = toy in line
        assert (done.returncode == 0) == right, done.stderr
        assert right or "hash" in done.stderr.lower()


class Session:
    """What an environment asks of a session of nox."""

    run_install = None

    def log(self, text: str) -> None:
        pass

    def error(self, text: str) -> None:
        raise SystemExit(text)


def test_of_sessions_at_once_one_makes_it_and_the_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("constraints").mkdir()
    Path("constraints/common.txt").touch()
    session: Any = Session()
    made: list[str] = []

    def make(wanted: Environment, run: Callable[..., object]) -> None:
        made.append("begun")
        time.sleep(0.5)  # the others have come
        install_python(wanted)
        wanted.confirm()
        made.append("done")

    monkeypatch.setattr(Environment, "make", make)
    with ThreadPoolExecutor(3) as threads:
        tried = [threads.submit(environments.common, session) for _ in range(3)]
    assert [each.result() for each in tried] == [".nox/common/bin/python"] * 3
    assert made == ["begun", "done"]
