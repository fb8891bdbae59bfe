"""The environments that sessions run in: what is in each, in which versions, and how it is made.

Sessions share them, so that no framework is installed twice.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
import zlib
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import nox

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import BusyError
from common.base.files import write_text
from common.base.locks import held
from sessions import accelerators
from sessions.accelerators import Choice, NoAcceleratorError
from sessions.pins import PINS, versions

FOLDER: Final = Path(".nox")
"""Where environments are."""

RESULTS: Final = Path("results")
"""Where runs go, and what is made of them."""

NO_GPUS: Final = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Tests of what CPUs do see no GPU: one that asks for three devices would want three GPUs."""

INSTALLING: Final = 1800
"""Seconds that a session waits while another one makes the environment that both need."""

UV_VARIABLES: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}
"""By the name of a setting of pip: uv's variable that says the same."""


@dataclass(frozen=True)
class Environment:
    """An environment with what the files `pins` name, and nothing else.

    Of the files `builds`, one is added: the first that can be had here, or the last. What the files
    `alone` name is added without what it asks for.
    """

    folder: Path
    pins: Sequence[Path]
    builds: Sequence[Path] = ()
    alone: Sequence[Path] = ()

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin/python"

    def make(self, run: Callable[..., object]) -> None:
        """Makes it, in the first way that does not fail; `run` runs a command."""
        *others, last = self.ways()
        for way in others:
            with suppress(Exception):
                sources = sources_of_pip()
                for command in way:
                    run(*command, env=sources)
                self.confirm()
                return
        for command in last:
            run(*command)
        self.confirm()

    def ways(self) -> Iterator[list[list[str]]]:
        """The ways to make it, the fastest first: each is commands, one after the other.

        uv takes a fifth of pip's time, but it may not be there.
        """
        if find_spec("uv") and "no-index" not in pip_settings():
            uv = [sys.executable, "-m", "uv", "--quiet"]
            made = [*uv, "venv", "--clear", "--python", sys.executable, str(self.folder)]
            install = [*uv, "pip", "install", "--python", str(self.python)]
            if sys.dont_write_bytecode:  # every process would compile all that it imports
                install.append("--compile-bytecode")
            yield [made, *self._installed(install)]
        made = [sys.executable, "-m", "venv", "--clear", str(self.folder)]
        yield [made, *self._installed([str(self.python), "-m", "pip", "install", "--quiet"])]

    def _installed(self, install: list[str]) -> list[list[str]]:
        # What is in no file, or has another digest, is refused.
        install = [*install, "--require-hashes"]
        build = [*filter(is_offered, self.builds), *self.builds[-1:]][:1]
        together = [f"--requirement={file}" for file in (*self.pins, *build)]
        alone = [[*install, "--no-deps", f"--requirement={file}"] for file in self.alone]
        return [[*install, *together], *alone]

    def complete(self) -> bool:
        """Whether it was made from the same wishes and versions, to the end, and still runs."""
        # Its interpreter is a link to the one that made it, which may be gone.
        runs = os.access(self.python, os.X_OK)
        with suppress(FileNotFoundError):
            return runs and self._stamp.read_text() == self._digest()
        return False

    def confirm(self) -> None:
        """Says that it is complete."""
        write_text(self._stamp, self._digest())

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed"

    def _digest(self) -> str:
        files = [*self.pins, *self.builds, *self.alone]
        recipe = "\n".join([sys.version, *(file.read_text(encoding="utf-8") for file in files)])
        return hashlib.sha256(recipe.encode()).hexdigest()


def is_offered(build: Path) -> bool:
    """Whether the sources of pip have the version of PyTorch that a file names."""
    asked = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    return versions(build.read_text(encoding="utf-8"))["torch"] in re.findall(r"[^\s,]+", listed)


def pip_settings() -> dict[str, str]:
    """What pip has been told for all its commands or for installing, by files and variables."""
    asked = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    lines = [line.partition("=") for line in listed.splitlines()]
    return {
        name.removeprefix(section): literal_eval(value)
        for section in ("global.", "install.", ":env:.")  # the strongest is last
        for name, _, value in lines
        if name.startswith(section)
    }


def sources_of_pip() -> dict[str, str]:
    """The variables that make uv look for packages where pip has been told to, and as pip does.

    uv reads neither pip's files nor its variables: it would take CUDA's PyTorch in place of the
    CPU's that somebody has asked pip for. They are variables, because a command is logged, and an
    address may hold a password.
    """
    told = pip_settings()
    sources = {uv: told[pip] for pip, uv in UV_VARIABLES.items() if told.get(pip)}
    if "UV_FIND_LINKS" in sources:
        sources["UV_FIND_LINKS"] = ",".join(sources["UV_FIND_LINKS"].split())
    # As pip, uv then takes the best version of all sources, not of the first that has any.
    return {**sources, "UV_INDEX_STRATEGY": "unsafe-best-match"} if sources else {}


def mxnet_is_missing() -> str:
    """Why MXNet cannot be had here; empty if it can."""
    if sys.version_info >= (3, 12):
        return "its NumPy 1.23 has no wheel for Python 3.12 or later"
    if platform.machine() != "x86_64":
        return f"it has no wheel for {sys.platform} on {platform.machine()}"
    return ""


def available() -> list[str]:
    """The frameworks that this machine can have."""
    return [name for name in FRAMEWORKS if name != "mxnet" or not mxnet_is_missing()]


def less_compiling(framework: str) -> dict[str, str]:
    """Variables for tests of JAX, which compile more than they compute: half the time, measured.

    Grid, notebooks and all the faults compile as users do, in both dtypes, but the default wrapper
    alone.
    """
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    return {"XLA_FLAGS": flags} if framework == "jax" else {}


def kept_programs(framework: str) -> dict[str, str]:
    """Variables for runs of JAX that are compared: what one has compiled, others take from disk.

    Programs stay as long as the environment. A run that was killed may have left half of one, and
    JAX would warn of it, and compile it, for ever: it is removed here.
    """
    if framework != "jax":
        return {}
    folder = (FOLDER / "jax/programs").absolute()
    for program in folder.glob("*-cache"):
        try:
            zlib.decompress(program.read_bytes())
        except zlib.error:
            program.unlink(missing_ok=True)
    kept = {"JAX_COMPILATION_CACHE_DIR": str(folder)}
    return {**kept, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def require_known(session: nox.Session, chosen: Iterable[str], known: Sequence[str]) -> None:
    """Ends the session with a line if something is chosen that there is not."""
    if unknown := [each for each in chosen if each not in known]:
        session.error(f"there is no {' '.join(unknown)}: choose from {', '.join(known)}")


def environment(
    session: nox.Session, name: str, pins: Sequence[str] = (), alone: Sequence[str] = ()
) -> str:
    """The Python of the environment `name`; it is made only if it is not complete.

    `pins` names its files in constraints/, if it is not `name`; what those of `alone` have is added
    without what it asks for.
    """
    pins = pins or [name]
    either = any("pytorch" in each for each in pins) and "torch" not in pins
    builds = ["torch-cpu", "torch"] if either else []
    wanted = Environment(FOLDER / name, *map(files, (pins, builds, alone)))
    if wanted.complete():
        return str(wanted.python)
    try:
        with held(FOLDER, name, INSTALLING):  # no other session makes it meanwhile
            if not wanted.complete():
                session.log(f"installing the environment {wanted.folder}, once")
                wanted.make(session.run_install)
    except BusyError:
        session.error(f"another session is still at work on {wanted.folder}: end it, or wait")
    return str(wanted.python)


def files(names: Sequence[str]) -> list[Path]:
    """The files in constraints/ of these names."""
    return [Path("constraints") / f"{name}.txt" for name in names]


def choice(session: nox.Session, framework: str, *, quiet: bool = False) -> Choice:
    """Whether a framework gets its build for GPUs; unless `quiet`, the session says so, and why.

    Ends the session if that is asked for and cannot be, and skips it without the framework.
    """
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")
    try:
        found = accelerators.choice(framework)
    except NoAcceleratorError as error:
        session.error(str(error))
    if not quiet:
        session.log(found.line)
    return found


def choices(session: nox.Session) -> list[Choice]:
    """The same of all frameworks, without a word."""
    return [choice(session, each, quiet=True) for each in available()]


def framework(session: nox.Session, name: str) -> str:
    """The Python of a framework's environment; ends or skips the session as `choice` does."""
    return made(session, choice(session, name))


def made(session: nox.Session, choice: Choice) -> str:
    """The Python of the environment that a framework's sessions take."""
    return environment(session, choice.name, pins_of(choice))


def pins_of(choice: Choice) -> list[str]:
    """The names of the files that a framework is installed from."""
    # PyTorch's two builds are of one package, which stands in files of its own.
    return ["pytorch", "torch"] if choice.name == "pytorch-cuda" else [choice.name]


def bench(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework, its rivals and the book's own package.

    It is the build for CPUs: in one for GPUs, rivals could fail where these are hidden.
    """
    return beside_rivals(session, Choice(framework, False, ""))


def beside_rivals(session: nox.Session, choice: Choice) -> str:
    """The same, with the build that a framework's sessions take."""
    return environment(session, f"bench-{choice.name}", pins_beside_rivals(choice), alone=["d2l"])


def pins_beside_rivals(choice: Choice) -> list[str]:
    """The names of the files that a framework and its rivals are installed from."""
    rivals = [name] if (name := f"bench-{choice.framework}") in PINS else []
    return [*rivals, *pins_of(choice)] if choice.cuda else rivals or [choice.framework]


def notebook(session: nox.Session, framework: str) -> str:
    """The Python of an environment with a framework and Jupyter; ends or skips as above."""
    found = choice(session, framework)
    return environment(session, f"notebooks-{found.name}", [*pins_of(found), "notebooks"])


def site(session: nox.Session) -> str:
    """The Python of an environment that makes notebooks and site, and needs no framework."""
    return environment(session, "site")


def common(session: nox.Session) -> str:
    """The Python of an environment for what needs no framework."""
    return environment(session, "common")
