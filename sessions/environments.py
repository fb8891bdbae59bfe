"""The environments of sessions: the pinned files that each has, and how it is installed.

Sessions share them, so that no framework is installed twice.
"""

import atexit
import os
import platform
import re
import shutil
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
from common.base.errors import RequestError
from common.base.files import write_text
from sessions import accelerators
from sessions.accelerators import Choice
from sessions.pins import PINS, path_of

FOLDER: Final = Path(".nox")
"""The folder of all environments."""

RESULTS: Final = Path("results")
"""The folder of runs and of what is computed from them."""

NO_GPUS: Final = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Hides GPUs from tests on the CPU: one that asks for three devices would want three GPUs."""

EDITABLE: Final = "multi-gpu-parity.pth"
"""The file of an environment that puts this folder last on `sys.path`."""

UV: Final = (
    shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "",
    "--quiet",
)
"""The uv that constraints/nox.txt pins, or the one that has made the Python of `nox`."""

OF_PIP: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
"""The variable of uv for each setting of pip about where packages are."""


def environment(session: nox.Session, name: str, pins: Sequence[str] = ()) -> str:
    """The Python of the environment `name`, which has the pinned packages.

    `pins` are names of files in constraints/, by default `name`.
    """
    if not UV[0]:
        session.error("there is no uv: python -m pip install -r constraints/nox.txt")
    python, pins = made(session, FOLDER / name), [*(pins or [name])]
    if "torch-cpu" in pins and not has_build_for_cpus(python):
        pins[pins.index("torch-cpu")] = "torch"
    # The files list all dependencies. Only wheels: another distribution runs code when built.
    # Unlike `sync`, it asks for nothing where all packages are there.
    command = [*UV, "pip", "install", f"--python={python}", "--no-deps", "--require-hashes"]
    command += ["--only-binary=:all:", *(f"--requirement={path_of(name)}" for name in pins)]
    session.run_install(*command, env=settings_of_pip(), log=False)
    return python


def made(session: nox.Session, folder: Path) -> str:
    """The Python of an environment, which is made with the project unless it is there."""
    python, config = folder / "bin/python", folder / "pyvenv.cfg"
    version = f"version_info = {platform.python_version()}\n"
    # Its interpreter is a link to the one that made it, which may be gone.
    if not os.access(python, os.X_OK) or version not in config.read_text(encoding="utf-8"):
        session.log(f"making the environment {folder}, once")
        session.run_install(*UV, "venv", "--clear", f"--python={sys.executable}", str(folder))
        # What an editable installation does, without a build. Relative: a clone can be moved.
        libraries = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
        write_text(libraries / EDITABLE, f"{os.path.relpath('.', libraries)}\n")
    return str(python)


def has_build_for_cpus(python: str) -> bool:
    """Whether an environment has PyTorch's build for CPUs, or an index."""
    command = [*UV, "pip", "install", "--dry-run", "--no-deps", f"--python={python}"]
    command.append(f"--requirement={path_of('torch-cpu')}")
    env = os.environ | settings_of_pip()
    return not subprocess.run(command, env=env, capture_output=True, check=False).returncode


@cache
def settings_of_pip() -> dict[str, str]:
    """Variables that tell uv what pip knows of indexes; those that are set already stay."""
    output = subprocess.run([*pip(), "config", "list"], capture_output=True, text=True, check=False)
    # The environment's are first, and decide. A setting with several values has a line for each.
    told = dict(reversed(re.findall(r"^\S+\.([\w-]+)='(.*)'$", output.stdout, re.MULTILINE)))
    known = {OF_PIP[name]: told[name].replace(r"\n", " ").strip() for name in OF_PIP.keys() & told}
    # pip takes the best version of all indexes, uv by itself that of the first one.
    env = {"UV_INDEX_STRATEGY": "unsafe-best-match", **known}
    return {name: value for name, value in env.items() if name not in os.environ}


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
    flags += " --xla_cpu_parallel_codegen_split_count=1"
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
        asked = os.environ.get("ACCELERATOR", "")
        build = accelerators.choose(framework, asked, accelerators.cards_here())
    except RequestError as error:
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
        return environment(session, "site")
    build = choice(session, name)
    return environment(session, f"notebooks-{build.name}", [*pins_of(build), "notebooks"])
