"""The environments of sessions: the pinned files that each has, and how it is installed.

Sessions share them, so that no framework is installed twice.
"""

import atexit
import hashlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import nox

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import BusyError
from common.base.files import write_text
from common.base.locks import held
from sessions import accelerators
from sessions.accelerators import Choice, NoAcceleratorError
from sessions.pins import PINS, path_of, versions

FOLDER: Final = Path(".nox")
"""The folder of all environments."""

RESULTS: Final = Path("results")
"""The folder of runs and of what is computed from them."""

NO_GPUS: Final = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Hides GPUs from tests on the CPU: one that asks for three devices would want three GPUs."""

EDITABLE: Final = "multi-gpu-parity.pth"
"""The file of an environment that puts this folder last on `sys.path`."""

INSTALLING: Final = 1800
"""Seconds that a session waits while another one installs the environment that both need."""


def environment(session: nox.Session, name: str, pins: Sequence[str] = ()) -> str:
    """The Python of the environment `name`, which is installed unless it is complete.

    `pins` are names of files in constraints/, by default `name`.
    """
    folder, pins = FOLDER / name, pins or [name]
    if not is_complete(folder, pins):
        try:
            with held(FOLDER, name, INSTALLING):  # other sessions wait here
                if not is_complete(folder, pins):
                    session.log(f"installing the environment {folder}, once")
                    install(session, folder, pins)
        except BusyError:
            session.error(f"another session is still at work on {folder}: end it, or wait")
    return str(folder / "bin/python")


def is_complete(folder: Path, pins: Iterable[str]) -> bool:
    """Whether an environment was installed to the end from these files, and still runs."""
    # Its interpreter is a link to the one that made it, which may be gone.
    stamp = folder / "installed"
    runs = os.access(folder / "bin/python", os.X_OK) and stamp.exists()
    return runs and stamp.read_text(encoding="utf-8") == recipe(pins)


def recipe(pins: Iterable[str]) -> str:
    """A digest of this Python's version and of the files that are installed."""
    content = [sys.version, EDITABLE, *(path_of(name).read_text(encoding="utf-8") for name in pins)]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()


def install(session: nox.Session, folder: Path, pins: Sequence[str]) -> None:
    """Makes an environment with exactly what these files pin, and marks it complete."""
    install_into, chosen = new_environment(session, folder), [*pins]
    # The files list all dependencies. Only wheels: another distribution runs code when built.
    checked = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
    if "torch-cpu" in pins:
        chosen.remove("torch-cpu")
        if is_offered("torch-cpu"):  # pip finds it, but uv may not look there
            options = ["--quiet", f"--python={folder / 'bin/python'}", "install", "--no-compile"]
            session.run_install(*pip(), *options, *checked, *requirements(["torch-cpu"]))
        else:
            chosen.append("torch")
    session.run_install(*install_into, *checked, *requirements(chosen))
    write_text(folder / "installed", recipe(pins))


def new_environment(session: nox.Session, folder: Path) -> list[str]:
    """Makes an environment with the project; the beginning of the command that installs into it.

    That is uv's, or pip's where there is no uv, or pip has another index, which uv does not know.
    """
    python = folder / "bin/python"
    other_index = re.search(r"\.(index-url|no-index)=", output_of_pip("config", "list"))
    if find_spec("uv") and not other_index:
        uv = [sys.executable, "-m", "uv", "--quiet"]
        session.run_install(*uv, "venv", "--clear", f"--python={sys.executable}", str(folder))
        install = [*uv, "pip", "install", f"--python={python}"]
    else:
        session.run_install(sys.executable, "-m", "venv", "--clear", str(folder))
        install = [str(python), "-m", "pip", "install", "--quiet"]
    # What an editable installation does, without a build. Relative, so that a clone can be moved.
    libraries = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    write_text(libraries / EDITABLE, f"{os.path.relpath('.', libraries)}\n")
    return install


def requirements(names: Iterable[str]) -> list[str]:
    """The arguments that name files in constraints/."""
    return [f"--requirement={path_of(name)}" for name in names]


def is_offered(name: str) -> bool:
    """Whether pip finds the version of PyTorch that a file pins."""
    wanted = versions(path_of(name).read_text(encoding="utf-8"))["torch"]
    return wanted in re.findall(r"[^\s,]+", output_of_pip("index", "versions", "torch"))


def output_of_pip(*arguments: str) -> str:
    """Standard output of a command of pip; empty if it fails."""
    return subprocess.run([*pip(), *arguments], capture_output=True, text=True, check=False).stdout


@cache
def pip() -> Sequence[str]:
    """The command of this Python's pip, or of a temporary one: Pythons that uv makes have none."""
    if find_spec("pip"):
        return sys.executable, "-m", "pip"
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    if subprocess.run([sys.executable, "-m", "venv", folder.name], check=False).returncode:
        print("there is no pip, and its settings, as PIP_INDEX_URL, are not read", file=sys.stderr)
    return f"{folder.name}/bin/python", "-m", "pip"


def mxnet_is_missing() -> str:
    """Why MXNet cannot be installed here; empty if it can."""
    if sys.version_info >= (3, 12):
        return "its NumPy 1.23 has no wheel for Python 3.12 or later"
    if platform.machine() != "x86_64":
        return f"it has no wheel for {sys.platform} on {platform.machine()}"
    return ""


def available() -> list[str]:
    """The frameworks that can be installed here."""
    return [name for name in FRAMEWORKS if name != "mxnet" or not mxnet_is_missing()]


def fast_compilation(framework: str) -> dict[str, str]:
    """Variables that halve the time of JAX's tests, which compile more than they compute.

    The grid and the notebooks compile as users do.
    """
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    return {"XLA_FLAGS": flags} if framework == "jax" else {}


def compilation_cache(framework: str) -> dict[str, str]:
    """Variables that make runs of JAX share compiled programs on disk."""
    if framework != "jax":
        return {}
    kept = {"JAX_COMPILATION_CACHE_DIR": str((FOLDER / "jax/programs").absolute())}
    return {**kept, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def require_known(session: nox.Session, chosen: Iterable[str], known: Sequence[str]) -> None:
    """Ends the session with one line if a name is not known."""
    if unknown := [name for name in chosen if name not in known]:
        session.error(f"there is no {' '.join(unknown)}: choose from {', '.join(known)}")


def choice(session: nox.Session, framework: str, *, quiet: bool = False) -> Choice:
    """The build of a framework; unless `quiet`, the session logs it with the reason.

    Skips the session without the framework. Ends it if `ACCELERATOR` cannot be satisfied.
    """
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")
    try:
        build = accelerators.choice(framework)
    except NoAcceleratorError as error:
        session.error(str(error))
    if not quiet:
        session.log(f"{framework} runs in .nox/{build.name}: {build.why}")
    return build


def choices(session: nox.Session) -> list[Choice]:
    """The choices of all frameworks that can be installed."""
    return [choice(session, name, quiet=True) for name in available()]


def framework(session: nox.Session, name: str) -> str:
    """The Python of a framework's environment; ends or skips the session as `choice` does."""
    return chosen(session, choice(session, name))


def chosen(session: nox.Session, choice: Choice) -> str:
    """The Python of the environment of a choice."""
    return environment(session, choice.name, pins_of(choice))


def pins_of(choice: Choice) -> list[str]:
    """The names of the files that pin a framework's build."""
    # PyTorch's two builds are of one package, which is pinned in files of its own.
    if choice.framework == "pytorch":
        return ["pytorch", "torch" if choice.cuda else "torch-cpu"]
    return [choice.name]


def bench(session: nox.Session, choice: Choice) -> str:
    """The Python of an environment with a framework and its rivals in the benchmark."""
    return environment(session, f"bench-{choice.name}", pins_of_bench(choice))


def pins_of_bench(choice: Choice) -> list[str]:
    """The names of the files that pin a framework and its rivals."""
    rivals = f"bench-{choice.framework}"
    return [*([rivals] if rivals in PINS else []), *pins_of(choice)]


def notebook(session: nox.Session, name: str) -> str:
    """The Python of an environment with Jupyter, and with the framework `name`, if it is one."""
    if name not in FRAMEWORKS:
        return site(session)
    build = choice(session, name)
    return environment(session, f"notebooks-{build.name}", [*pins_of(build), "notebooks"])


def site(session: nox.Session) -> str:
    """The Python of the environment that builds notebooks and site."""
    return environment(session, "site")


def common(session: nox.Session) -> str:
    """The Python of the environment without a framework."""
    return environment(session, "common")
