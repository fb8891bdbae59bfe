"""`nox` runs every framework and compares; `nox -s tests` tests; `nox --list` lists the rest."""

import hashlib
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nox

# The plan of runs has one source; it needs nothing but the standard library.
sys.path.insert(0, str(Path(__file__).parent))
from common.suites import CHAPTERS, FRAMEWORKS, SUITE_NAMES, SUITES

nox.needs_version = ">=2024.4.15"
nox.options.sessions = [*FRAMEWORKS, "parity"]

RESULTS = Path("results")
HANDOVER = RESULTS / "handover"
EXTRAS = nox.project.load_toml("pyproject.toml")["project"]


def mxnet_is_missing() -> str:
    """Why MXNet cannot be had here; empty if it can."""
    if sys.version_info >= (3, 12):
        return "its NumPy 1.23 has no wheel for Python 3.12 or later"
    if platform.machine().lower() not in ("x86_64", "amd64") or sys.platform == "win32":
        return f"it has no wheel for {sys.platform} on {platform.machine()}"
    return ""


def available() -> list[str]:
    """The frameworks that this machine can have."""
    return [name for name in FRAMEWORKS if name != "mxnet" or not mxnet_is_missing()]


def environment(session: nox.Session, name: str, *extras: str) -> str:
    """The Python of the environment `name`; it is made, or filled anew, only when need be.

    Sessions share environments, so that no framework is installed twice.
    """
    folder = Path(".nox") / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    constraints = Path("constraints") / f"{name}.txt"
    optional = EXTRAS["optional-dependencies"]
    wanted = [*EXTRAS["dependencies"], *(need for extra in extras for need in optional[extra])]
    recipe = "\n".join([sys.version, *wanted, constraints.read_text(encoding="utf-8")])
    stamp, digest = folder / "installed", hashlib.sha256(recipe.encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != digest:
        session.log(f"installing the environment {folder}, once")
        session.run(sys.executable, "-m", "venv", "--clear", str(folder), external=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-c", str(constraints)]
        session.run(*install, *wanted, external=True)
        stamp.write_text(digest)
    return str(python)


def framework_environment(session: nox.Session, framework: str) -> str:
    """The Python of a framework's environment; skips the session if it cannot be had."""
    if framework not in available():
        session.skip(f"MXNet 1.9.1 cannot be had here: {mxnet_is_missing()}")
    return environment(session, framework, framework, "test")


def run_framework(session: nox.Session, framework: str) -> None:
    """Runs what the arguments say, else the whole grid."""
    python = framework_environment(session, framework)
    if session.posargs:
        chapter, *flags = session.posargs
        if chapter not in CHAPTERS:
            session.error(f"say which chapter: nox -s {framework} -- {CHAPTERS[0]} {chapter} ...")
        session.run(python, "-m", f"frameworks.{framework}.{chapter}", *flags, external=True)
        return
    for suite in SUITES:
        module = f"frameworks.{framework}.{suite.chapter}"
        commands = [[python, "-m", module, *suite.flags(k, RESULTS)] for k in suite.devices]
        if suite.timed:
            for command in commands:
                session.run(*command, external=True)
        else:
            run_together(session, commands)


def run_together(session: nox.Session, commands: list[list[str]]) -> None:
    """Runs commands side by side, as many as there are cores; fails if one does."""
    run = partial(subprocess.run, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for command, done in zip(commands, pool.map(run, commands), strict=True):
            session.log(f"{' '.join(command)}\n{done.stdout.rstrip()}")
            if done.returncode:
                session.error(f"exit status {done.returncode}")


def hand_over(session: nox.Session, framework: str) -> None:
    """Trains for a moment and leaves the weights where the other frameworks' tests find them."""
    python = framework_environment(session, framework)
    flags = "--dataset=synthetic --devices=1 --dtype=float64 --batch-size=20 --steps=3 --quiet"
    examples = ["--train-examples=60", "--test-examples=50", f"--out={HANDOVER}"]
    for chapter in CHAPTERS:
        weights = f"--save-weights={HANDOVER / f'{framework}-{chapter}.safetensors'}"
        module = f"frameworks.{framework}.{chapter}"
        session.run(python, "-m", module, *flags.split(), *examples, weights, external=True)


@nox.session(venv_backend="none")
def pytorch(session: nox.Session) -> None:
    """Run PyTorch: the whole grid, or e.g. `-- scratch --devices 4 --epochs 3`."""
    run_framework(session, "pytorch")


@nox.session(venv_backend="none")
def tensorflow(session: nox.Session) -> None:
    """Run TensorFlow: the whole grid, or e.g. `-- scratch --devices 4 --epochs 3`."""
    run_framework(session, "tensorflow")


@nox.session(venv_backend="none")
def jax(session: nox.Session) -> None:
    """Run JAX: the whole grid, or e.g. `-- scratch --devices 4 --epochs 3`."""
    run_framework(session, "jax")


@nox.session(venv_backend="none")
def mxnet(session: nox.Session) -> None:
    """Run MXNet: the whole grid, or e.g. `-- scratch --devices 4 --epochs 3`."""
    run_framework(session, "mxnet")


@nox.session(venv_backend="none")
def parity(session: nox.Session) -> None:
    """Compare what is in results/; other folders and frameworks after `--`."""
    python = environment(session, "common", "common", "test")
    if mxnet_is_missing():
        session.log(f"without MXNet, which cannot be had here: {mxnet_is_missing()}")
    plan = [str(RESULTS), "--suites", *SUITE_NAMES, "--frameworks", *available()]
    session.run(python, "-m", "common.parity", *(session.posargs or plan), external=True)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test, on every framework, and the shared ones on NumPy 1.23 and 2."""
    command = ["-m", "pytest", *session.posargs]
    common = environment(session, "common", "common", "test")
    session.run(common, *command, external=True)
    for framework in available():
        hand_over(session, framework)
    command.append(f"--handover={HANDOVER}")
    for framework in available():
        python = framework_environment(session, framework)
        if framework == "mxnet":
            session.run(python, *command, external=True)
        session.run(python, *command, "--framework", framework, external=True)


@nox.session(venv_backend="none")
def book(session: nox.Session) -> None:
    """Train with the book's setting on 1 and 2 devices; half an hour on 2 cores."""
    folder = RESULTS / "book"
    for framework in available():
        python = framework_environment(session, framework)
        for devices in (1, 2):
            flags = ["--preset=book", f"--devices={devices}", f"--out={folder}"]
            session.run(python, "-m", f"frameworks.{framework}.scratch", *flags, external=True)
    common = environment(session, "common", "common", "test")
    picture = str(folder / "accuracy.svg")
    session.run(common, "-m", "common.summary", str(folder), "--picture", picture, external=True)


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style and format."""
    python = environment(session, "lint", "lint", "common", "test")
    session.run(python, "-m", "ruff", "check", ".", external=True)
    session.run(python, "-m", "ruff", "format", "--check", ".", external=True)


@nox.session(venv_backend="none")
def typing(session: nox.Session) -> None:
    """Check types, of each backend against its own framework."""
    mypy = [environment(session, "lint", "lint", "common", "test"), "-m", "mypy"]
    session.run(*mypy, "common", "tests", "noxfile.py", external=True)
    for framework in available():
        python = framework_environment(session, framework)
        package = ["--package", f"frameworks.{framework}", "--python-executable", python]
        session.run(*mypy, *package, external=True)
